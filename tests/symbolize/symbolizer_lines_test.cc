// The front door with source lines, inlined calls and the rarer sources of names. What perf 6.1 shows for
// such places decides: tests/data/symbolize holds the files.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "format/base/file.h"
#include "format/records/perf_abi.h"
#include "tests/symbolize/symbolizer_case.h"

namespace tacho::symbolize {
namespace {

namespace abi = format::abi;

class SymbolizerLines : public test::SymbolizerCase {
 protected:
  // "NAME+OFFSET FILE:LINE", with " (inlined)".
  std::string shown(std::uint64_t ip, Origin origin, std::uint8_t mode = abi::kCpumodeUser) {
    std::ostringstream text;
    for (const Frame& frame : resolve(ip, origin, mode)) {
      text << frame.function;
      if (!frame.function.empty())
        text << "+" << std::hex << frame.shown_address - frame.function_start << std::dec;
      if (!frame.file.empty())
        text << " " << frame.file.substr(frame.file.rfind('/') + 1) << ":" << frame.line;
      if (frame.is_inlined) text << " (inlined)";
      text << "\n";
    }
    return text.str();
  }
};

TEST_F(SymbolizerLines, UnwoundStacksGetAFrameForEachInlinedCall) {
  options.inlines = Inlines::Unwound;
  root.copy(kData + "/calls-5.so", "/lib/calls.so");
  map("/lib/calls.so");
  EXPECT_EQ(shown(kStart + 0x2c3, Origin::Unwound),
            "geo::Box::area+13 calls.cc:12 (inlined)\n"
            "operator()+13 calls.cc:24 (inlined)\n"
            "outer+13 calls.cc:26\n");
  EXPECT_EQ(shown(kStart + 0x2a4, Origin::Unwound), "alone+4 calls.cc:18\n");
  EXPECT_EQ(shown(kStart + 0x2c3, Origin::Chain), "outer+13\n") << "perf gives none to frame pointer stacks";
  EXPECT_EQ(shown(kStart + 0x2c3, Origin::Alone), "outer+13\n");
  EXPECT_EQ(shown(kStart + 0x2a4, Origin::Unwound), "alone+4 calls.cc:18\n") << "asked again, after another";
}

TEST_F(SymbolizerLines, ACallersLineAndInlinedCallsAreThoseOfTheCall) {
  options.inlines = Inlines::All;
  root.copy(kData + "/calls-5.so", "/lib/calls.so");
  map("/lib/calls.so");
  const auto caller = [&](std::uint64_t ip) {
    std::string text;
    for (const Frame& frame : symbolizer().resolve(spaces.find_mapping(7, {ip - 1}, abi::kCpumodeUser), {ip},
                                                   abi::kCpumodeUser, Origin::Chain, AddressKind::Return))
      text += std::string(frame.function) + (frame.is_inlined ? " (inlined)" : "") + ":" +
              std::to_string(frame.line) + "+" + std::to_string(frame.shown_address - frame.function_start) +
              "\n";
    return text;
  };
  const std::string inside = caller(kStart + 0x2c9);
  EXPECT_EQ(inside, "operator() (inlined):24+25\nouter:26+25\n") << "0x2c8 is the last byte of the lambda";
  EXPECT_EQ(shown(kStart + 0x2cd, Origin::Chain), "outer+1d calls.cc:26\n") << "sampled there";
}

TEST_F(SymbolizerLines, NamesStayMangledWhenAskedFor) {
  options.inlines = Inlines::All;
  options.demangle = Demangle::No;
  root.copy(kData + "/calls-4.so", "/lib/calls.so");
  map("/lib/calls.so");
  EXPECT_EQ(shown(kStart + 0x2c3, Origin::Chain),
            "_ZNK3geo3Box4areaEv+13 calls.cc:12 (inlined)\n"
            "operator()+13 calls.cc:24 (inlined)\n"
            "outer+13 calls.cc:26\n");
  EXPECT_EQ(shown(kStart + 0x2c3, Origin::Alone), "outer+13\n");
}

TEST_F(SymbolizerLines, ALineIsThatOfTheInnermostFunction) {
  options.source_lines = SourceLines::Yes;
  root.copy(kData + "/calls-5.so", "/lib/calls.so");
  map("/lib/calls.so");
  EXPECT_EQ(shown(kStart + 0x2c3, Origin::Chain), "outer+13 calls.cc:12\n");
  EXPECT_EQ(resolve(kStart + 0x2c3, Origin::Chain)[0].line_state, LineState::Known);
  EXPECT_EQ(resolve(kStart + 0x2c3, Origin::Chain)[0].elf_address, 0x2c3u);
  EXPECT_EQ(resolve(kStart + 0x2c3, Origin::Chain)[0].file.front(), '/');
  EXPECT_EQ(resolve(kStart + 0x10, Origin::Chain)[0].line_state, LineState::Unknown);
}

TEST_F(SymbolizerLines, WhereNoLineIsKnownTheSymbolTableDecidesWhatPerfShows) {
  options.source_lines = SourceLines::Yes;
  options.inlines = Inlines::Unwound;
  root.copy(kData + "/names.so", "/lib/full.so");
  map("/lib/full.so");
  EXPECT_EQ(resolve(kStart + 0x508, Origin::Chain)[0].line_state, LineState::Unknown);
  const auto unwound = resolve(kStart + 0x508, Origin::Unwound);
  ASSERT_EQ(unwound.size(), 1u);
  EXPECT_EQ(unwound[0].file, "??");
  EXPECT_FALSE(unwound[0].is_inlined);

  root.copy(kData + "/names-stripped.so", "/lib/stripped.so");
  map("/lib/stripped.so");
  EXPECT_EQ(resolve(kStart + 0x508, Origin::Unwound)[0].line_state, LineState::NoSource);
}

TEST_F(SymbolizerLines, NothingIsReadThatWasNotAskedFor) {
  root.copy(kData + "/calls-5.so", "/lib/calls.so");
  map("/lib/calls.so");
  EXPECT_EQ(resolve(kStart + 0x2c3, Origin::Unwound)[0].line_state, LineState::NotRequested);
}

TEST_F(SymbolizerLines, EmbeddedSymbolsNameWhatTheDynamicTableDoesNot) {
  root.copy(kData + "/calls-embedded.so", "/lib/calls.so");
  map("/lib/calls.so");
  EXPECT_EQ(shown(kStart + 0x2a4, Origin::Alone), "alone+4\n") << "only in .gnu_debugdata";
  EXPECT_EQ(shown(kStart + 0x2c3, Origin::Alone), "outer+13\n");
}

TEST_F(SymbolizerLines, ADebuglinkWithoutABuildIdIsFollowedOnlyIfTheSumIsRight) {
  // The link's sum is that of names.debug; without build ids nothing else identifies it.
  const std::string id = "\x01\x23\x45\x67\x89\xab\xcd\xef";
  const auto without_id = [&](const std::string& name) {
    const auto bytes = format::read_file(kData + "/" + name);
    std::string text(format::as_text(*bytes));
    const auto at = text.find(id);
    EXPECT_NE(at, std::string::npos);
    text[at - 8] = 9;  // another type of note
    return text;
  };
  root.write("/lib/names.so", without_id("names-stripped.so"));
  root.copy(kData + "/names.debug", "/lib/names.debug");
  map("/lib/names.so");
  EXPECT_EQ(resolve(kStart + 0x508, Origin::Alone)[0].source, 'l');

  made.reset();
  root.write("/usr/lib/names.so", without_id("names-stripped.so"));
  root.write("/usr/lib/names.debug", without_id("names.debug"));
  map("/usr/lib/names.so");
  EXPECT_EQ(resolve(kStart + 0x508, Origin::Alone)[0].source, 'd') << "its sum is another one";
}

TEST_F(SymbolizerLines, TheCacheHasWhatTheHostDoesNot) {
  const test::Folder cache;
  cache.copy(kData + "/calls-5.so", "/.build-id/01/23456789abcdef0123456789abcdef01234565/elf");
  options.build_id_dir = cache.path();
  options.source_lines = SourceLines::Yes;
  map("/gone/calls.so", "0123456789abcdef0123456789abcdef01234565");
  EXPECT_EQ(shown(kStart + 0x2a4, Origin::Alone), "alone+4 calls.cc:18\n");
  EXPECT_EQ(resolve(kStart + 0x2a4, Origin::Alone)[0].source, 'B');
}

TEST_F(SymbolizerLines, AFileInTheCacheWithAnotherBuildIdIsNotUsed) {
  const test::Folder cache;
  cache.copy(kData + "/calls-4.so", "/.build-id/01/23456789abcdef0123456789abcdef01234565/elf");
  options.build_id_dir = cache.path();
  map("/gone/calls.so", "0123456789abcdef0123456789abcdef01234565");
  EXPECT_EQ(shown(kStart + 0x2a4, Origin::Alone), "\n");
  EXPECT_NE(missing().find("; build id 0123456789abcdef0123456789abcdef01234565 was recorded"),
            std::string::npos);
}

TEST_F(SymbolizerLines, AVmlinuxNamesAMovedKernelWithItsLines) {
  // Any ELF file will do for one that has a symbol "_text"; here the recorder called it "outer".
  constexpr std::uint64_t kKernel = 0xffffffff81000000;
  options.vmlinux = kData + "/calls-5.so";
  options.source_lines = SourceLines::Yes;
  map_kernel(kKernel, 0x3000, kKernel + 0x2b0, "[kernel.kallsyms]outer");
  EXPECT_EQ(shown(kKernel + 0x2c3, Origin::Alone, abi::kCpumodeKernel), "outer+13 calls.cc:12\n");
  EXPECT_EQ(resolve(kKernel + 0x2c3, Origin::Alone, abi::kCpumodeKernel)[0].source, 'v');
}

TEST_F(SymbolizerLines, AVmlinuxThatCannotBeUsedIsSaid) {
  options.vmlinux = kData + "/calls-5.so";
  map_kernel(0xffffffff81000000, 0x3000, 0xffffffff81000000, "[kernel.kallsyms]_text");
  EXPECT_EQ(shown(0xffffffff81000100, Origin::Alone, abi::kCpumodeKernel), "\n");
  EXPECT_NE(missing().find("calls-5.so: has no symbol _text"), std::string::npos) << missing();
}

// However an ELF file or its DWARF is damaged: the other modules keep their names and lines, and there is at
// most one line about this one.
TEST_F(SymbolizerLines, ADamagedModuleCostsItsOwnNamesAndOneLine) {
  options.source_lines = SourceLines::Yes;
  constexpr std::uint64_t kOther = kStart + 0x10000;
  constexpr std::size_t kSectionTable = 40;  // the place of its place
  struct Row {
    const char* what;
    std::size_t begin, size;
    std::string names, said;
  };
  const std::string here = "/lib/calls.so: ";
  const Row kRows[] = {
      {"the magic number", 0, 4, "\n", "not an ELF file"},
      {"where the sections are", kSectionTable, 8, "\n", "has no symbol table"},
      {"a packed .debug_info", 0x11c8, 0x200, "alone+4\n",
       "its source lines cannot be read: a compressed section"},
  };
  root.copy(kData + "/calls-5.so", "/lib/other.so");
  for (const Row& row : kRows) {
    made.reset();
    const auto bytes = format::read_file(kData + "/calls-4.so");
    ASSERT_TRUE(bytes);
    std::string text(format::as_text(*bytes));
    for (std::size_t at = row.begin; at < row.begin + row.size; ++at) text[at] = '\x55';
    root.write("/lib/calls.so", text);
    map("/lib/calls.so", "0123456789abcdef0123456789abcdef01234564");
    map("/lib/other.so", "", kOther);
    EXPECT_EQ(shown(kStart + 0x2a4, Origin::Alone), row.names) << row.what;
    EXPECT_EQ(shown(kOther + 0x2a4, Origin::Alone), "alone+4 calls.cc:18\n") << row.what;
    const std::string lines = missing();
    // The other one has no build id, and that is said as well.
    EXPECT_EQ(std::ranges::count(lines, '\n'), 2) << row.what << "\n" << lines;
    EXPECT_NE(lines.find(here + row.said), std::string::npos) << row.what << "\n" << lines;
  }
}

TEST_F(SymbolizerLines, WhatTheLinesLackIsSaid) {
  options.source_lines = SourceLines::Yes;
  root.copy(kData + "/calls-split.so", "/lib/calls.so");
  map("/lib/calls.so");
  EXPECT_EQ(shown(kStart + 0x2c3, Origin::Alone), "outer+13 calls.cc:12\n");
  EXPECT_EQ(
      missing(),
      "/lib/calls.so: its .dwo file calls-split.dwo is neither in its folder nor where it was compiled\n"
      "/lib/calls.so: its names are a guess: no build id of it was recorded\n");
}

}  // namespace
}  // namespace tacho::symbolize
