#include "record/stacks/needed_libraries.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "format/byte_writer.h"
#include "format/file.h"

namespace tacho::record {
namespace {

struct Entry {
  std::uint32_t flags;
  std::string name, path;
};
std::vector<std::byte> cache_of(const std::vector<Entry>& entries) {
  constexpr std::size_t kHead = 48, kEntry = 24;
  format::ByteWriter out, texts;
  const auto offset_of = [&](const std::string& text) {
    const std::size_t at = kHead + kEntry * entries.size() + texts.size();
    texts.bytes(std::as_bytes(std::span(text)));
    texts.zeros(1);
    return static_cast<std::uint32_t>(at);
  };
  const std::string magic = "glibc-ld.so.cache1.1";
  out.bytes(std::as_bytes(std::span(magic)));
  out.u32(static_cast<std::uint32_t>(entries.size())).u32(0).zeros(20);
  for (const Entry& entry : entries)
    out.u32(entry.flags).u32(offset_of(entry.name)).u32(offset_of(entry.path)).u32(0).u64(0);
  out.bytes(texts.view());
  return std::move(out).take();
}

TEST(NeededLibraries, TheCacheTellsWhereLibrariesOfThisMachineLie) {
  const auto cache = cache_of({{0x0303, "libx.so.1", "/lib/libx.so.1"},
                               {0x0303, "libx.so.1", "/old/libx.so.1"},
                               {0x0803, "liby.so.2", "/lib32/liby.so.2"},
                               {0x0303, "libz.so", "relative/libz.so"}});
  EXPECT_EQ(libraries_of_cache(cache), (LibraryPaths{{"libx.so.1", "/lib/libx.so.1"}}));
}

TEST(NeededLibraries, ADamagedCacheTellsOfNothingMore) {
  auto cache = cache_of({{0x0303, "libx.so.1", "/lib/libx.so.1"}});
  for (std::size_t size = 0; size < cache.size(); ++size)
    EXPECT_LE(libraries_of_cache(format::Bytes(cache).first(size)).size(), 1u);
  cache[20] = cache[21] = cache[22] = cache[23] = std::byte{0xff};  // how many there are
  EXPECT_LE(libraries_of_cache(cache).size(), 3u);
  cache[0] = std::byte{'x'};
  EXPECT_TRUE(libraries_of_cache(cache).empty());
}

TEST(NeededLibraries, ThisProgramNeedsItsInterpreterAndTheCLibrary) {
  const auto cache = format::read_file("/etc/ld.so.cache");
  if (!cache) GTEST_SKIP() << "no /etc/ld.so.cache";
  const auto found = needed_libraries("/proc/self/exe", libraries_of_cache(*cache));
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(found, [&](const auto& path) { return path.find(name) != std::string::npos; });
  };
  if (found.empty()) GTEST_SKIP() << "linked statically";
  EXPECT_NE(found.front().find("/ld"), std::string::npos) << found.front();
  EXPECT_TRUE(has("/libc.so."));
  EXPECT_TRUE(has("/libstdc++.so."));
  EXPECT_TRUE(needed_libraries("/dev/null", {}).empty());
}

}  // namespace
}  // namespace tacho::record
