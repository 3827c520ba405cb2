#include "record/host/probe_offsets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "format/base/file.h"

// What is looked for in this very program.
extern "C" __attribute__((noinline, used)) int tacho_test_place(int value) {
#if defined(__x86_64__) || defined(__aarch64__)
  // A marker as sys/sdt.h writes it, without arguments.
  asm volatile(
      "990: nop\n"
      ".pushsection .note.stapsdt,\"\",\"note\"\n"
      ".balign 4\n"
      ".4byte 992f-991f, 994f-993f, 3\n"
      "991: .asciz \"stapsdt\"\n"
      "992: .balign 4\n"
      "993: .8byte 990b\n"
      ".8byte 0\n"
      ".8byte 0\n"
      ".asciz \"tacho_test\"\n"
      ".asciz \"marker\"\n"
      ".asciz \"\"\n"
      "994: .balign 4\n"
      ".popsection\n");
#endif
  return value + 1;
}

namespace tacho_test_places {

struct Queue {
  __attribute__((noinline, used)) int push(int value);
};
int Queue::push(int value) { return value + 2; }
__attribute__((noinline, used)) int twice(int value) { return 2 * value; }
__attribute__((noinline, used)) long twice(long value) { return 2 * value; }
}  // namespace tacho_test_places

namespace tacho::record {
namespace {

std::vector<std::byte> own_file() {
  auto file = format::read_file("/proc/self/exe");
  EXPECT_TRUE(file);
  return file ? std::move(*file) : std::vector<std::byte>{};
}

TEST(ElfPlaces, AFunctionIsAtTheOffsetOfItsCode) {
  const auto file = own_file();
  const auto offset = function_offset(file, "tacho_test_place");
  ASSERT_TRUE(offset) << offset.error().what;
  ASSERT_LT(*offset + 16, file.size());
  EXPECT_EQ(std::memcmp(file.data() + *offset, reinterpret_cast<const void*>(&tacho_test_place), 16), 0)
      << "the same instructions in the file and in memory";
}

TEST(ElfPlaces, AFunctionIsFoundAsACppSourceCallsIt) {
  const auto file = own_file();
  const auto offset = function_offset(file, "tacho_test_places::Queue::push");
  ASSERT_TRUE(offset) << offset.error().what;
  const auto by_linker = function_offset(file, "_ZN17tacho_test_places5Queue4pushEi");
  ASSERT_TRUE(by_linker) << by_linker.error().what;
  EXPECT_EQ(*offset, *by_linker);
  const auto several = function_offset(file, "tacho_test_places::twice");
  ASSERT_FALSE(several);
  for (const char* part : {"2 functions", "_ZN17tacho_test_places5twiceEi", "_ZN17tacho_test_places5twiceEl"})
    EXPECT_NE(several.error().what.find(part), std::string::npos) << several.error().what;
}

TEST(ElfPlaces, FunctionsHaveNames) {
  const auto names = function_names(own_file());
  ASSERT_TRUE(names);
  EXPECT_NE(std::ranges::find(*names, "tacho_test_place"), names->end());
  EXPECT_EQ(std::ranges::find(*names, ""), names->end());
}

TEST(ElfPlaces, CopiesThatACompilerChangedAreReported) {
  for (const char* name : {"f.isra.0", "f.constprop.0", "f.part.3", "f.cold", "f.isra.0.constprop.1",
                           "f.constprop.0.cold", "f.isra.0.lto_priv.2", "_ZN1a1bEi.isra.0@V1"})
    EXPECT_TRUE(is_changed_copy(name)) << name;
  for (const char* name : {"f", "isra", "part", "f.lto_priv.0", "f.llvm.4711", "f.0", "f.part.of", "", ".",
                           "..", "isra.0", "f@part.0", "_ZN4core4part3new17h0E", "a..part..b"})
    EXPECT_FALSE(is_changed_copy(name)) << name;
}

TEST(ElfPlaces, TheNearestFunctionIsNamed) {
  const auto offset = function_offset(own_file(), "tacho_test_palce");
  ASSERT_FALSE(offset);
  EXPECT_NE(offset.error().what.find("did you mean 'tacho_test_place'?"), std::string::npos)
      << offset.error().what;
}

#if defined(__x86_64__) || defined(__aarch64__)
TEST(ElfPlaces, AMarkerIsInItsFunction) {
  const auto file = own_file();
  const auto markers = usdt_markers(file);
  ASSERT_TRUE(markers);
  const auto function = function_offset(file, "tacho_test_place");
  ASSERT_TRUE(function);
  std::size_t found = 0;
  for (const UsdtMarker& marker : *markers) {
    if (marker.provider != "tacho_test" || marker.name != "marker") continue;
    ++found;
    EXPECT_GE(marker.offset, *function);
    EXPECT_LT(marker.offset, *function + 64);
    EXPECT_EQ(marker.semaphore, 0u);
  }
  EXPECT_EQ(found, 1u);
}
#endif

TEST(ElfPlaces, WhatIsNoProgramIsRefused) {
  const std::string text = "#!/bin/sh\necho\n";
  EXPECT_FALSE(function_offset(std::as_bytes(std::span(text)), "main"));
  EXPECT_FALSE(usdt_markers({}));
}

// Numbers of the file are not trusted: of damaged headers, tables and notes, a place is in the file or an
// error.
TEST(ElfPlaces, OfADamagedFileAllPlacesAreInTheFile) {
  const auto whole = own_file();
  std::mt19937 random(1);
  for (int round = 0; round < 18; ++round) {
    auto damaged = whole;
    if (round % 3 == 0) damaged.resize(random() % damaged.size());
    const std::size_t reach = round % 2 == 0 ? std::min<std::size_t>(damaged.size(), 1024) : damaged.size();
    for (int i = 0; i < 40 && reach > 0; ++i) damaged[random() % reach] = static_cast<std::byte>(random());
    if (const auto offset = function_offset(damaged, "tacho_test_place"))
      EXPECT_LT(*offset, damaged.size());
    else
      EXPECT_FALSE(offset.error().what.empty());
    if (const auto names = function_names(damaged))
      for (const std::string& name : *names) {
        ASSERT_LT(name.size(), damaged.size());
      }
    if (const auto markers = usdt_markers(damaged))
      for (const UsdtMarker& marker : *markers) {
        ASSERT_LT(marker.offset, damaged.size()) << marker.name;
      }
    if (const auto functions = functions_of(damaged))
      for (const FunctionOffset& each : functions->functions) {
        ASSERT_LT(each.offset, damaged.size()) << each.name;
      }
    if (const auto facts = call_facts(damaged); !facts) {
      EXPECT_FALSE(facts.error().what.empty());
    }
  }
}

}  // namespace

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
  const LibraryPaths libraries = libraries_of_cache(std::as_bytes(std::span(cache)));
  const auto library = libraries.find(name);
  return library == libraries.end() ? std::nullopt : std::optional(library->second);
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
  const std::string path = "/opt/lib/libx.so.1";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto start = found(whole.substr(0, size), "libx.so.1");
    EXPECT_TRUE(!start || path.starts_with(*start)) << size << ": " << *start;
  }
  EXPECT_EQ(found(whole, "libx.so.1"), path);
  for (int i = 0; i < 20000; ++i) {
    std::string cache = whole;
    for (int changes = 0; changes < 4; ++changes)
      cache[20 + random() % (cache.size() - 20)] = static_cast<char>(random());
    for (const auto& [library, place] : libraries_of_cache(std::as_bytes(std::span(cache)))) {
      ASSERT_TRUE(place.starts_with('/')) << "round " << i << ": " << library << ": " << place;
      ASSERT_NE(cache.find(library), std::string::npos) << "round " << i;
      ASSERT_NE(cache.find(place), std::string::npos) << "round " << i;
    }
  }
}

TEST(LibraryFile, TheCacheOfThisMachineIsRead) {
  const auto cache = format::read_file("/etc/ld.so.cache");
  if (!cache) GTEST_SKIP() << "there is no /etc/ld.so.cache";
  ASSERT_TRUE(libraries_of_cache(*cache).contains("libc.so.6"));
  EXPECT_EQ(library_file("libc.so.6", -1).operator bool(), true);
}

}  // namespace

}  // namespace tacho::record
