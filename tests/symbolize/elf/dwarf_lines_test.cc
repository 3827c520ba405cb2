// The expected calls are what addr2line -a -i -f -s of binutils 2.40 prints for the same addresses in the
// same order; see calls.cc and plain.c in tests/data/symbolize.
#include "symbolize/elf/dwarf_lines.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "tests/symbolize/folder.h"

namespace tacho::symbolize {
namespace {

constexpr LinkerSymbol kOuter{"outer", {0x2b0}};
constexpr LinkerSymbol kLate{"late", {0x2e0}};
constexpr LinkerSymbol kWalk{"walk", {0x300}};
constexpr LinkerSymbol kAlone{"_ZL5alonei", {0x2a0}};

Result<DwarfLines> open_lines(const std::string& path, const std::string& root = {}) {
  auto file = format::open_input(path);
  if (!file) return std::move(file.error());
  return DwarfLines::open(std::move(*file), root);
}

std::string calls_at(DwarfLines& lines, std::uint64_t address, const LinkerSymbol& symbol,
                     UseSymbolName use_symbol_name = UseSymbolName::AsPerf) {
  std::vector<Call> calls;
  lines.find_calls({address}, symbol, use_symbol_name, calls);
  std::string text;
  for (const Call& call : calls) {
    text += std::string(call.function) + " " + std::string(call.file.substr(call.file.rfind('/') + 1)) + ":" +
            std::to_string(call.line) + "\n";
  }
  return text;
}

class DwarfForms : public testing::TestWithParam<const char*> {};

TEST_P(DwarfForms, TellWhatAddr2lineTells) {
  auto lines = open_lines(kData + "/" + GetParam());
  ASSERT_TRUE(lines) << lines.error().what;
  if (const auto part = lines->supplementary_file()) {
    ASSERT_TRUE(part->path == "calls-common.debug" || part->path == "calls-sup.debug") << part->path;
    EXPECT_FALSE(part->build_id.empty());
    auto shared = format::open_input(kData + "/" + part->path);
    ASSERT_TRUE(shared && lines->use_supplementary_file(std::move(*shared)));
  }
  EXPECT_EQ(
      calls_at(*lines, 0x2c1, kOuter),
      "outer calls.cc:5\n"  // twice() by rights: it has no linker's name, and starts where the symbol does
      "_ZNK3geo3Box4areaEv calls.cc:12\n"
      "operator() calls.cc:24\n"
      "outer calls.cc:26\n");
  EXPECT_EQ(calls_at(*lines, 0x2ee, kLate), "late calls.cc:5\nlate calls.cc:31\n")
      << "asked for the first time";
  EXPECT_EQ(calls_at(*lines, 0x2e9, kLate), "twice calls.cc:5\nlate calls.cc:31\n");
  EXPECT_EQ(calls_at(*lines, 0x2c6, kOuter), "outer calls.cc:24\nouter calls.cc:26\n");
  EXPECT_EQ(calls_at(*lines, 0x2cd, kOuter), "outer calls.cc:26\n");
  EXPECT_EQ(calls_at(*lines, 0x30b, kWalk), "step plain.c:5\nwalk plain.c:9\n")
      << "C's names are the linker's";
  EXPECT_EQ(calls_at(*lines, 0x2a4, kAlone), "_ZL5alonei calls.cc:18\n");
  EXPECT_EQ(calls_at(*lines, 0x2a4, kAlone), "_ZL5alonei calls.cc:18\n") << "it starts where the symbol does";
  EXPECT_EQ(calls_at(*lines, 0x2f8, {}), "") << "between two functions";
  EXPECT_EQ(calls_at(*lines, 0x10, {}), "");
  EXPECT_EQ(calls_at(*lines, ~std::uint64_t{0}, {}), "");
  EXPECT_EQ(lines->missing_reason(), "");
}

INSTANTIATE_TEST_SUITE_P(All, DwarfForms,
                         testing::Values("calls-5.so", "calls-4.so", "calls-split.so", "calls-shared.so",
                                         "calls-sup.so", "calls-zstd.so", "calls-old.so"),
                         [](const auto& form) {
                           std::string name = form.param;
                           std::ranges::replace_if(
                               name, [](char c) { return c == '-' || c == '.'; }, '_');
                           return name;
                         });

struct NamedCalls {
  std::uint64_t address;
  LinkerSymbol symbol;
  std::string_view calls;
};

// Checks the rows in order and in reverse: names must not depend on earlier look-ups.
void check_in_both_orders(const std::vector<NamedCalls>& rows, UseSymbolName use_symbol_name) {
  auto lines = open_lines(kData + "/calls-5.so");
  ASSERT_TRUE(lines) << lines.error().what;
  const auto check = [&](const NamedCalls& row) {
    EXPECT_EQ(calls_at(*lines, row.address, row.symbol, use_symbol_name), row.calls)
        << std::hex << row.address;
  };
  std::ranges::for_each(rows, check);
  std::for_each(rows.rbegin(), rows.rend(), check);
}

// The output of addr2line, run once for each address.
TEST(DwarfLines, InlinedFunctionsHaveTheNamesOfAddr2line) {
  check_in_both_orders(
      {{0x2ee, kLate, "late calls.cc:5\nlate calls.cc:31\n"},
       {0x2e9, kLate, "late calls.cc:5\nlate calls.cc:31\n"},
       {0x2c1, kOuter,
        "outer calls.cc:5\n_ZNK3geo3Box4areaEv calls.cc:12\noperator() calls.cc:24\nouter calls.cc:26\n"},
       {0x2c6, kOuter, "outer calls.cc:24\nouter calls.cc:26\n"},
       {0x2a4, kAlone, "_ZL5alonei calls.cc:18\n"}},
      UseSymbolName::Innermost);
}

// The output of llvm-symbolizer, but with the symbol's name for the function whose code it is.
TEST(DwarfLines, InlinedFunctionsHaveTheirDwarfNames) {
  check_in_both_orders(
      {{0x2ee, kLate, "twice calls.cc:5\nlate calls.cc:31\n"},
       {0x2e9, kLate, "twice calls.cc:5\nlate calls.cc:31\n"},
       {0x2c1, kOuter,
        "twice calls.cc:5\n_ZNK3geo3Box4areaEv calls.cc:12\noperator() calls.cc:24\nouter calls.cc:26\n"},
       {0x2c6, kOuter, "operator() calls.cc:24\nouter calls.cc:26\n"},
       {0x2a4, kAlone, "_ZL5alonei calls.cc:18\n"}},
      UseSymbolName::Outermost);
}

TEST(DwarfLines, ASupplementaryFileMustHaveTheChecksum) {
  auto lines = open_lines(kData + "/calls-sup.so");
  ASSERT_TRUE(lines) << lines.error().what;
  for (const char* const name : {"/calls-common.debug", "/calls-sup.so"}) {
    auto other = format::open_input(kData + name);
    ASSERT_TRUE(other);
    EXPECT_FALSE(lines->use_supplementary_file(std::move(*other))) << name;
  }
}

// What addr2line prints for the same sources compiled by clang, whose addresses are others.
class ClangsForms : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, ClangsForms, testing::Values("clang", "single-5", "single-4"),
                         [](const auto& form) {
                           std::string name = form.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_P(ClangsForms, AreReadAsAddr2lineReadsThem) {
  auto lines = open_lines(kData + "/calls-" + GetParam() + ".so");
  ASSERT_TRUE(lines) << lines.error().what;
  struct Row {
    std::uint64_t address;
    std::string_view calls;
  };
  constexpr Row kRows[] = {
      {0x2a3,
       "_ZL5twicei calls.cc:5\n_ZNK3geo3Box4areaEv calls.cc:12\n_ZZ5outerENK3$_0clEi calls.cc:24\nouter "
       "calls.cc:26\n"},
      {0x2ae, "_ZNK3geo3Box4areaEv calls.cc:12\n_ZZ5outerENK3$_0clEi calls.cc:24\nouter calls.cc:26\n"},
      {0x2ba, "outer calls.cc:26\n"},
      {0x2d4, "_ZL5alonei calls.cc:18\n"},
      {0x2e0, "late calls.cc:30\n"},
      {0x2ec, "_ZL5twicei calls.cc:5\nlate calls.cc:31\n"},
      {0x2f4, "step plain.c:5\nwalk plain.c:9\n"},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(calls_at(*lines, row.address, {}), row.calls) << std::hex << row.address;
  }
  EXPECT_EQ(lines->missing_reason(), "");
}

TEST(DwarfLines, WithoutTheSplitOffPartTheLinesAreLeft) {
  const test::Folder folder;
  folder.copy(kData + "/calls-split.so", "/calls-split.so");
  auto lines = open_lines(folder.path() + "/calls-split.so", folder.path());
  ASSERT_TRUE(lines) << lines.error().what;
  EXPECT_EQ(lines->missing_reason(), "");
  EXPECT_EQ(calls_at(*lines, 0x2c1, kOuter), "outer calls.cc:5\n");
  EXPECT_EQ(lines->missing_reason(),
            "its .dwo file calls-split.dwo is neither in its folder nor where it was compiled");
}

TEST(DwarfLines, ASplitOffPartThatIsNoFileOrLiesOutsideTheRootIsLeftAlone) {
  const test::Folder folder, outside;
  folder.copy(kData + "/calls-split.so", "/a/calls-split.so");
  ASSERT_EQ(::mkfifo((folder.path() + "/a/calls-split.dwo").c_str(), 0600), 0);
  auto piped = open_lines(folder.path() + "/a/calls-split.so", folder.path());
  ASSERT_TRUE(piped);
  EXPECT_EQ(calls_at(*piped, 0x2c1, kOuter), "outer calls.cc:5\n");

  folder.copy(kData + "/calls-split.so", "/b/calls-split.so");
  outside.copy(kData + "/calls-split.dwo", "/x.dwo");
  std::filesystem::create_symlink(outside.path() + "/x.dwo", folder.path() + "/b/calls-split.dwo");
  auto linked = open_lines(folder.path() + "/b/calls-split.so", folder.path());
  ASSERT_TRUE(linked);
  EXPECT_EQ(calls_at(*linked, 0x2c1, kOuter), "outer calls.cc:5\n");
}

TEST(DwarfLines, WithoutTheSharedPartTheOtherNamesAreLeft) {
  auto lines = open_lines(kData + "/calls-shared.so");
  ASSERT_TRUE(lines);
  const std::string calls = calls_at(*lines, 0x2c1, kOuter);
  EXPECT_NE(calls.find("calls.cc:26\n"), std::string::npos) << calls;
  EXPECT_EQ(lines->missing_reason(), "its supplementary file calls-common.debug is missing");
}

TEST(DwarfLines, AFileWithoutDwarfIsAnError) {
  auto lines = open_lines(kData + "/names.so");
  ASSERT_FALSE(lines);
  EXPECT_NE(lines.error().what.find("no DWARF"), std::string::npos) << lines.error().what;
  EXPECT_FALSE(open_lines(kData + "/names.s"));
}

// Bytes all over the debugging sections flipped, one at a time: anything may be found, in bounded time.
TEST(DwarfLines, DamageCostsNamesOnly) {
  auto bytes = format::read_file(kData + "/calls-5.so");
  ASSERT_TRUE(bytes);
  const test::Folder folder;
  std::size_t opened = 0, refused = 0;
  for (std::size_t at = 0x1000; at < bytes->size(); at += 31) {
    (*bytes)[at] ^= std::byte{0xff};
    folder.write("/x.so", format::as_text(*bytes));
    (*bytes)[at] ^= std::byte{0xff};
    auto lines = open_lines(folder.path() + "/x.so", folder.path());
    if (!lines) continue;
    ++opened;
    for (const std::uint64_t address : {0x2c1, 0x30b, 0x2a4}) calls_at(*lines, address, kOuter);
    refused += !lines->missing_reason().empty();
  }
  EXPECT_GT(opened, 50u) << "hardly any damage got as far as a lookup";
  EXPECT_GT(refused, 5u) << "lengths and links are seen to be broken, other numbers are not";
}

}  // namespace
}  // namespace tacho::symbolize
