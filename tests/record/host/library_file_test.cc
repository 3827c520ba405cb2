#include "record/host/library_file.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "format/file.h"

namespace tacho::record {
namespace {

struct Library {
  std::uint32_t flags;
  std::string name, path;
  std::uint64_t hardware = 0;
};

#if defined(__aarch64__)
constexpr std::uint32_t kOurs = 0x0a03;
#else
constexpr std::uint32_t kOurs = 0x0303;
#endif

std::string number(std::uint64_t value, std::size_t bytes) {
  return {reinterpret_cast<const char*>(&value), bytes};
}

std::string cache_of(const std::vector<Library>& libraries) {
  std::string entries, texts;
  const std::size_t first = 48 + libraries.size() * 24;
  for (const Library& each : libraries) {
    entries += number(each.flags, 4) + number(first + texts.size(), 4);
    texts += each.name + '\0';
    entries += number(first + texts.size(), 4) + number(0, 4) + number(each.hardware, 8);
    texts += each.path + '\0';
  }
  return "glibc-ld.so.cache1.1" + number(libraries.size(), 4) + number(texts.size(), 4) +
         std::string(20, '\0') + entries + texts;
}

std::optional<std::string> found(const std::string& cache, std::string_view name) {
  return cached_library(std::as_bytes(std::span(cache)), name);
}

TEST(LibraryFile, TheLinkersCacheKnowsFoldersOfItsOwn) {
  const std::string cache = cache_of({{0x0103, "libx.so.1", "/opt/32/libx.so.1"},
                                      {kOurs, "libx.so.1", "/opt/v3/libx.so.1", std::uint64_t{1} << 62},
                                      {kOurs, "libx.so.1", "/opt/lib/libx.so.1"},
                                      {kOurs, "liby.so", "/opt/lib/liby.so"}});
  EXPECT_EQ(found(cache, "libx.so.1"), "/opt/lib/libx.so.1");
  EXPECT_EQ(found(cache, "liby.so"), "/opt/lib/liby.so");
  EXPECT_EQ(found(cache, "libx.so"), std::nullopt);
  EXPECT_EQ(found("", "libx.so.1"), std::nullopt);
  EXPECT_EQ(found("ld.so-1.7.0", "libx.so.1"), std::nullopt);
}

TEST(LibraryFile, NoBytesOfTheCacheHarmIt) {
  std::mt19937 random(1);
  const std::string whole = cache_of({{kOurs, "libx.so.1", "/opt/lib/libx.so.1"}});
  for (std::size_t size = 0; size < whole.size(); ++size) (void)found(whole.substr(0, size), "libx.so.1");
  for (int i = 0; i < 20000; ++i) {
    std::string cache = whole;
    for (int changes = 0; changes < 4; ++changes)
      cache[20 + random() % (cache.size() - 20)] = static_cast<char>(random());
    (void)found(cache, "libx.so.1");
  }
}

TEST(LibraryFile, TheCacheOfThisMachineIsRead) {
  const auto cache = format::read_file("/etc/ld.so.cache");
  if (!cache) GTEST_SKIP() << "there is no /etc/ld.so.cache";
  const auto path = cached_library(*cache, "libc.so.6");
  ASSERT_TRUE(path);
  EXPECT_EQ(library_file("libc.so.6", -1).operator bool(), true);
}

}  // namespace
}  // namespace tacho::record
