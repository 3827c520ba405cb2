#include "record/stacks/unwind_tables.h"

#include <gtest/gtest.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "format/base/byte_writer.h"
#include "format/base/file.h"
#include "tests/symbolize/elf_maker.h"

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
  return std::move(out).take_bytes();
}

TEST(NeededLibraries, TheCacheHasPathsOfThisMachinesLibraries) {
  const auto cache = cache_of({{0x0303, "libx.so.1", "/lib/libx.so.1"},
                               {0x0303, "libx.so.1", "/old/libx.so.1"},
                               {0x0803, "liby.so.2", "/lib32/liby.so.2"},
                               {0x0303, "libz.so", "relative/libz.so"}});
  EXPECT_EQ(libraries_of_cache(cache), (LibraryPaths{{"libx.so.1", "/lib/libx.so.1"}}));
}

TEST(NeededLibraries, ADamagedCacheHasNothingMore) {
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

using symbolize::test::number;

// A program whose dynamic section has these tags and texts.
class Hostile {
 public:
  void add(std::uint64_t tag, const std::string& text) {
    dynamic_ += number(tag, 8) + number(texts_.size(), 8);
    texts_ += text + '\0';
  }
  void add_folder(const std::string& path) { add(DT_RUNPATH, path); }
  std::vector<std::string> needed(const std::function<bool()>& stop = {}) const {
    const std::string path = testing::TempDir() + "/hostile." + std::to_string(getpid());
    std::ofstream(path, std::ios::binary)
        << symbolize::test::elf_file({{.name = ".dynamic", .type = SHT_DYNAMIC, .bytes = dynamic_},
                                      {.name = ".dynstr", .type = SHT_STRTAB, .bytes = texts_}});
    auto found = needed_libraries(path, {{"known.so", "/lib/known.so"}}, stop);
    unlink(path.c_str());
    return found;
  }

 private:
  std::string dynamic_, texts_;
};

TEST(NeededLibraries, OfOneFileOnlySoManyNamesAndNoneThatIsTooLong) {
  Hostile program;
  program.add(DT_NEEDED, "/" + std::string(300, 'x'));
  program.add(DT_NEEDED, "known.so");
  for (int i = 0; i < 1000; ++i) program.add(DT_NEEDED, "/nowhere/" + std::to_string(i));
  const auto found = program.needed();
  ASSERT_EQ(found.size(), 128u) << "the name that is too long counts for none";
  EXPECT_EQ(found.front(), "/lib/known.so");
  EXPECT_EQ(found.back(), "/nowhere/126");
}

TEST(NeededLibraries, OfManyFoldersTheFirstAreLookedInto) {
  const std::string folder = testing::TempDir() + "/needed." + std::to_string(getpid());
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  std::ofstream(folder + "/here.so") << "x";
  const auto with_before = [&](const std::string& before) {
    Hostile program;
    program.add_folder(before + folder);
    program.add(DT_NEEDED, "here.so");
    return program.needed();
  };
  const std::vector<std::string> here{folder + "/here.so"};
  EXPECT_EQ(with_before(symbolize::test::repeated("/nowhere:", 63)), here);
  EXPECT_TRUE(with_before(symbolize::test::repeated("/nowhere:", 64)).empty());
  EXPECT_EQ(with_before("/" + std::string(PATH_MAX, 'x') + ":"), here) << "no path is that long";
  EXPECT_TRUE(with_before(symbolize::test::repeated("/nowhere:", 1'000'000)).empty());
  unlink(here.front().c_str());
  rmdir(folder.c_str());
}

TEST(NeededLibraries, WhoIsToStopStops) {
  Hostile program;
  program.add_folder("/nowhere:/nowhere/else");
  for (int i = 0; i < 100; ++i) program.add(DT_NEEDED, std::to_string(i) + ".so");
  program.add(DT_NEEDED, "/found.so");
  EXPECT_EQ(program.needed(), std::vector<std::string>{"/found.so"});
  int asked = 0;
  EXPECT_TRUE(program.needed([&asked] { return ++asked > 10; }).empty());
  EXPECT_EQ(asked, 11);
}

}  // namespace

}  // namespace tacho::record
