// Small files whose DWARF would cost minutes or gigabytes if it were believed.
#include <gtest/gtest.h>

#include <ctime>
#include <functional>

#include "symbolize/elf/debug_image.h"
#include "symbolize/elf/dwarf_lines.h"
#include "tests/symbolize/elf_maker.h"
#include "tests/symbolize/folder.h"

namespace tacho::symbolize {
namespace {

using test::abbreviation;
using test::number;
using test::repeated;

constexpr std::uint64_t kInside = test::kUnitStart + 0x10;
constexpr double kMostSeconds = 5;  // of processor time; what costs more is not linear

const std::string kFunction = abbreviation(
    2, DW_TAG_subprogram, true,
    {{DW_AT_name, DW_FORM_string}, {DW_AT_low_pc, DW_FORM_addr}, {DW_AT_high_pc, DW_FORM_data8}});
const std::string kInlined = abbreviation(3, DW_TAG_inlined_subroutine, true,
                                          {{DW_AT_abstract_origin, DW_FORM_ref4},
                                           {DW_AT_low_pc, DW_FORM_addr},
                                           {DW_AT_high_pc, DW_FORM_data8},
                                           {DW_AT_call_line, DW_FORM_data1}});
const std::string kAbstract = abbreviation(4, DW_TAG_subprogram, false, {{DW_AT_name, DW_FORM_string}});
const std::string kBlock = abbreviation(5, DW_TAG_lexical_block, true, {});
const std::string kPlace = number(test::kUnitStart, 8) + number(test::kUnitSize, 8);

std::string text(unsigned code, std::string_view name) { return number(code, 1) + std::string(name) + '\0'; }

struct Answer {
  std::vector<Call> calls;
  std::string missing_reason;
  bool left_out = false;
  double seconds = 0;
};

// The lines must live as long as their answer.
struct Asked {
  explicit Asked(std::vector<test::ElfSection> sections) {
    folder.write("/x", test::elf_file(std::move(sections)));
    const std::clock_t start = std::clock();
    auto opened = DwarfLines::open(std::move(*format::open_input(folder.path() + "/x")), "");
    if (opened) lines.emplace(std::move(*opened));
    if (lines) {
      lines->find_calls({kInside}, {}, UseSymbolName::Innermost, answer.calls);
      answer.missing_reason = lines->missing_reason();
      answer.left_out = lines->left_out();
    } else {
      answer.missing_reason = opened.error().what;
    }
    answer.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  }
  test::Folder folder;
  std::optional<DwarfLines> lines;
  Answer answer;
};

TEST(HostileDwarf, NestedBlocksAreEachReadOnce) {
  constexpr std::size_t kDepth = 40'000;
  const std::string blocks = repeated(number(5, 1), kDepth) + std::string(kDepth, '\0');
  const Asked asked(test::dwarf(kFunction + kBlock, blocks + text(2, "behind") + kPlace + number(0, 1)));
  ASSERT_EQ(asked.answer.calls.size(), 1u) << asked.answer.missing_reason;
  EXPECT_EQ(asked.answer.calls[0].function, "behind");
  EXPECT_EQ(asked.answer.missing_reason, "");
  EXPECT_LT(asked.answer.seconds, kMostSeconds);
}

TEST(HostileDwarf, EntriesAreReadToAFixedDepth) {
  constexpr std::size_t kDepth = 100'000;
  const Asked asked(test::dwarf(kBlock, repeated(number(5, 1), kDepth) + std::string(kDepth, '\0')));
  EXPECT_EQ(asked.answer.missing_reason,
            "the rest of it is left out: a unit nests deeper than any compiler's");
  EXPECT_TRUE(asked.answer.left_out);
}

TEST(HostileDwarf, NestedInlinedCallsAreEachReadOnce) {
  constexpr std::size_t kDepth = 32'000;
  const std::string one = number(3, 1) + number(test::kFirstEntry, 4) + kPlace + number(7, 1);
  const Asked asked(test::dwarf(
      kFunction + kInlined + kAbstract,
      text(4, "inlined") + text(2, "f") + kPlace + repeated(one, kDepth) + std::string(kDepth + 1, '\0')));
  EXPECT_EQ(asked.answer.calls.size(), 1025u) << "perf's own limit, and the function around them";
  EXPECT_EQ(asked.answer.calls[0].function, "inlined");
  EXPECT_LT(asked.answer.seconds, kMostSeconds);
}

TEST(HostileDwarf, AListOfRangesThatManyNameIsNotReadForEach) {
  const std::string inlined =
      abbreviation(3, DW_TAG_inlined_subroutine, false,
                   {{DW_AT_abstract_origin, DW_FORM_ref4}, {DW_AT_ranges, DW_FORM_sec_offset}});
  std::string ranges;
  for (unsigned i = 0; i < 20'000; ++i) ranges += number(0x1000 + i, 8) + number(0x1000 + i + 1, 8);
  const std::string one = number(3, 1) + number(test::kFirstEntry, 4) + number(0, 4);
  const Asked asked(
      test::dwarf(kFunction + inlined + kAbstract,
                  text(4, "inlined") + text(2, "f") + kPlace + repeated(one, 20'000) + number(0, 1),
                  ranges + std::string(16, '\0')));
  EXPECT_TRUE(asked.answer.left_out);
  EXPECT_EQ(asked.answer.missing_reason, "functions are left out: more than a file of its size may have");
  EXPECT_FALSE(asked.answer.calls.empty()) << "those before it are kept";
  EXPECT_LT(asked.answer.seconds, kMostSeconds);
}

// Flags that are always true take no byte of an entry, and libdw steps over each.
TEST(HostileDwarf, EntriesWithThousandsOfAttributesAreNotAllRead) {
  std::string flags;
  for (int i = 0; i < 5000; ++i) flags += number(DW_AT_external, 1) + number(DW_FORM_flag_present, 1);
  const std::string entry =
      number(3, 1) + number(DW_TAG_variable, 1) + number(0, 1) + flags + std::string(2, '\0');
  const Asked asked(test::dwarf(kFunction + entry,
                                text(2, "f") + kPlace + number(0, 1) + repeated(number(3, 1), 1'000'000)));
  EXPECT_TRUE(asked.answer.left_out);
  EXPECT_EQ(asked.answer.missing_reason, "functions are left out: more than a file of its size may have");
  ASSERT_EQ(asked.answer.calls.size(), 1u) << "those before it are kept";
  EXPECT_EQ(asked.answer.calls[0].function, "f");
  EXPECT_LT(asked.answer.seconds, kMostSeconds);
}

TEST(HostileDwarf, ATableOfLinesThatIsTooLargeForItsFileIsLeftOut) {
  const std::string function = text(2, "f") + kPlace + number(0, 1);
  const Asked small(test::dwarf(kFunction, function, "", test::line_program(std::string(100, '\x20'))));
  ASSERT_EQ(small.answer.calls.size(), 1u);
  EXPECT_EQ(small.answer.calls[0].file, "a.c");
  EXPECT_FALSE(small.answer.left_out);

  const Asked large(test::dwarf(kFunction, function, "", test::line_program(std::string(1 << 20, '\x20'))));
  ASSERT_EQ(large.answer.calls.size(), 1u);
  EXPECT_EQ(large.answer.calls[0].function, "f");
  EXPECT_EQ(large.answer.calls[0].file, "");
  EXPECT_TRUE(large.answer.left_out);
  EXPECT_EQ(large.answer.missing_reason,
            "a table of 1048578 source lines and files is left out: more than a file of its size may have");
}

// Each entry names the next one twice: 2^60 ways to the end.
TEST(HostileDwarf, ANameIsNotSoughtForEver) {
  constexpr std::uint64_t kCount = 60, kSize = 9;
  const std::string link =
      abbreviation(4, DW_TAG_subprogram, false,
                   {{DW_AT_abstract_origin, DW_FORM_ref4}, {DW_AT_specification, DW_FORM_ref4}});
  const std::string function = abbreviation(
      2, DW_TAG_subprogram, false,
      {{DW_AT_abstract_origin, DW_FORM_ref4}, {DW_AT_low_pc, DW_FORM_addr}, {DW_AT_high_pc, DW_FORM_data8}});
  std::string entries;
  for (std::uint64_t i = 1; i <= kCount; ++i) {
    entries +=
        number(4, 1) + number(test::kFirstEntry + kSize * i, 4) + number(test::kFirstEntry + kSize * i, 4);
  }
  const Asked asked(
      test::dwarf(function + link, entries + number(2, 1) + number(test::kFirstEntry, 4) + kPlace));
  EXPECT_EQ(asked.answer.calls.size(), 1u);
  EXPECT_LT(asked.answer.seconds, kMostSeconds);
}

TEST(HostileDwarf, PackedSectionsThatWouldFillTheMemoryAreNotUnpacked) {
  auto sections = test::dwarf(kFunction, text(2, "f") + kPlace + number(0, 1));
  sections[1].flags = SHF_COMPRESSED;
  sections[1].bytes = number(ELFCOMPRESS_ZLIB, 4) + number(0, 4) + number(1 << 30, 8) + number(1, 8) +
                      std::string(1 << 16, 'x');
  const Asked marked(sections);
  EXPECT_NE(marked.answer.missing_reason.find("its compressed sections would take more than "),
            std::string::npos)
      << marked.answer.missing_reason;

  sections = test::dwarf(kFunction, text(2, "f") + kPlace + number(0, 1));
  sections[1].name = ".zdebug_info";
  sections[1].bytes = std::string("ZLIB\0\0\0\0\x40\0\0\0", 12) + std::string(1 << 20, 'x');
  const Asked named(sections);
  EXPECT_NE(named.answer.missing_reason.find("its compressed sections would take more than "),
            std::string::npos)
      << named.answer.missing_reason;
}

// Reading such a file may wait, or have effects.
TEST(HostileDwarf, NoFileOfTheKernelsOwnIsASupplementaryFile) {
  auto sections = test::dwarf(kFunction, text(2, "f") + kPlace + number(0, 1));
  sections.push_back(
      {.name = ".gnu_debugaltlink", .bytes = std::string("/proc/self/status") + std::string(21, '\0')});
  EXPECT_EQ(Asked(sections).answer.missing_reason, "its .gnu_debugaltlink names no regular file");
}

TEST(LineProgram, RowsAreCounted) {
  const auto count = [](const std::string& program, std::uint64_t offset = 0) {
    const auto sections = test::dwarf("", "", "", program);
    return count_line_rows(std::as_bytes(std::span(sections[2].bytes)), offset, std::endian::little);
  };
  constexpr std::uint64_t kFile = 1;
  EXPECT_EQ(count(test::line_program("")), kFile + 1) << "the end is one";
  EXPECT_EQ(count(test::line_program(std::string(7, '\x20'))), kFile + 8);
  EXPECT_EQ(count("\1\1"), kFile + 2) << "copy";
  EXPECT_EQ(count(std::string("\2\x20\3\x7f\4\1\5\1\x09\x20\x20\x0c\1\6\1", 15)), kFile + 1)
      << "arguments are no opcodes";
  EXPECT_EQ(count(std::string("\1\0\x7f\x01", 4)), kFile + 1) << "an extended opcode that is cut short";
  EXPECT_EQ(count("", 1 << 20), 0u);
  EXPECT_EQ(count("", 3), 0u) << "no header";
}

// The header of DWARF 5: lists of folders and files, each of which begins with the forms of its entries.
TEST(LineProgram, FilesAndFoldersOfDwarf5AreCounted) {
  const std::string head =
      number(1, 1) + number(1, 1) + number(1, 1) + number(0xfb, 1) + number(14, 1) + number(1, 1);
  const std::string folders =
      number(1, 1) + number(1, 1) + number(DW_FORM_string, 1) + number(3, 1) + std::string("/a\0b\0\0", 6);
  const std::string files = number(3, 1) + number(1, 1) + number(DW_FORM_line_strp, 1) + number(2, 1) +
                            number(DW_FORM_udata, 1) + number(5, 1) + number(DW_FORM_data16, 1) +
                            number(2, 1) +
                            repeated(number(7, 4) + number(0x81, 1) + number(1, 1) + std::string(16, 'm'), 2);
  const auto count = [&](const std::string& header) {
    const std::string body = number(5, 2) + number(8, 1) + number(0, 1) + number(header.size(), 4) + header;
    const std::string section = number(body.size(), 4) + body;
    return count_line_rows(std::as_bytes(std::span(section)), 0, std::endian::little);
  };
  EXPECT_EQ(count(head + folders + files), 5u);
  const std::string many = number(1, 1) + number(1, 1) + number(DW_FORM_string, 1) + number(0xff, 1) +
                           number(0xff, 1) + number(0x7f, 1);
  EXPECT_EQ(count(head + number(0, 1) + number(0, 1) + many + std::string(1000, '\0')), 1000u)
      << "no more than there are";
}

}  // namespace
}  // namespace tacho::symbolize
