#include "unwind/row_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>

#include "tests/unwind/cfi_image.h"

namespace tacho::unwind {
namespace {

using test::Code;
using test::Function;
using test::kBase;
using test::kText;

constexpr std::uint64_t kSection = 0x402000;

RowTable table_of(const std::vector<Function>& functions, const RowLimits& limits = {}) {
  const auto frames = test::eh_frame(functions, kSection);
  auto table = build_row_table({frames.bytes, kSection, CfiForm::EhFrame, std::endian::little}, limits);
  EXPECT_TRUE(table);
  return table ? std::move(*table) : RowTable{};
}

// "kind cfa rbp" of the row at an offset into the only function.
std::string row_at(const Code& program, std::uint64_t offset = 0, const Code& entry = test::kX86Entry,
                   const std::string& augmentation = "zR") {
  const RowTable table = table_of(
      {{.start = kText, .size = 0x100, .program = program, .entry = entry, .augmentation = augmentation}});
  const Row* const row = table.find_row(kBase + kText + offset);
  return row == nullptr
             ? "none"
             : std::to_string(row->kind) + " " + std::to_string(row->cfa) + " " + std::to_string(row->rbp);
}

TEST(RowTable, AFunctionWithAFramePointerHasThreeRows) {
  const Code program{0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6};  // push rbp; mov rsp, rbp
  EXPECT_EQ(row_at(program, 0), "7 1 0");
  EXPECT_EQ(row_at(program, 1), "7 2 -2");
  EXPECT_EQ(row_at(program, 3), "7 2 -2");
  EXPECT_EQ(row_at(program, 4), "6 2 -2");
  EXPECT_EQ(row_at(program, 0xff), "6 2 -2");
  EXPECT_EQ(row_at(program, 0x100), "21 0 0") << "behind the function nothing is known";
}

TEST(RowTable, RowsOfArm64SayWhereTheReturnAddressIs) {
  const auto row = [](const Code& program, std::uint64_t offset, const std::string& augmentation = "zR") {
    const Function function{kText, 0x100, program, test::kArmEntry, augmentation, 30};
    const auto frames = test::eh_frame({function}, kSection);
    const auto table = build_row_table(
        {frames.bytes, kSection, CfiForm::EhFrame, std::endian::little, 8, CfiMachine::Arm64});
    const Row* const found = table ? table->find_row(kBase + kText + offset) : nullptr;
    return found == nullptr ? "none"
                            : std::to_string(found->kind) + " " + std::to_string(found->cfa) + " " +
                                  std::to_string(found->rbp);
  };
  // stp x29, x30, [sp, -32]!; mov x29, sp; ldp x29, x30, [sp], 32
  const Code framed{0x44, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x44, 0x0d, 29, 0x48, 0x0c, 31, 0, 0xdd, 0xde};
  EXPECT_EQ(row(framed, 0), "7 0 0") << "in x30";
  EXPECT_EQ(row(framed, 4), "7 4 -4");
  EXPECT_EQ(row(framed, 8), "6 4 -4");
  EXPECT_EQ(row(framed, 16), "7 0 0");
  EXPECT_EQ(row({0x2d, 0x0e, 32, 0x9d, 4, 0x9e, 3}, 0), "7 4 -4") << "signed";
  EXPECT_EQ(row({0x0e, 0x90, 0x0a, 0x9d, 0xa2, 1, 0x9e, 0xa1, 1}, 0), "7 162 1")
      << "far below the CFA, at sp";
  EXPECT_EQ(row({0x0e, 16, 0x9e, 2}, 0), "24 2 -2") << "without x29";
  EXPECT_EQ(row({0x0c, 29, 16, 0x9e, 2}, 0), "25 2 -2");
  EXPECT_EQ(row({0x0e, 0x80, 0x20, 0x9e, 0x80, 4}, 0), "24 512 1") << "at sp, far below the CFA: Go";
  EXPECT_EQ(row({0x0e, 0x80, 0x20, 0x9e, 0xff, 3}, 0), "24 512 2") << "behind x19, which is at sp";
  EXPECT_EQ(row({0x0e, 0x80, 0x20, 0x9e, 0x82, 3}, 0), "24 512 127");
  EXPECT_EQ(row({0x0e, 0x80, 0x20, 0x9e, 0x81, 3}, 0), "22 0 0") << "too far from both";
  EXPECT_EQ(row({0x0e, 0x80, 0x20, 0x9e, 0x81, 4}, 0), "22 0 0") << "below sp";
  EXPECT_EQ(row({0x0e, 0x80, 0x20, 0x9d, 0xfe, 3, 0x9e, 0xfd, 3}, 0), "7 512 3") << "a record behind x19";
  EXPECT_EQ(row({0x0c, 29, 0x80, 0x20, 0x9d, 0x80, 4, 0x9e, 0xff, 3}, 0), "6 512 1");
  EXPECT_EQ(row({0x0e, 32, 0x9d, 4, 0x9e, 2}, 0), "50 4 -4") << "x29 is no frame pointer";
  EXPECT_EQ(row({0x0e, 32, 0x9d, 2, 0x9e, 4}, 0), "46 4 -2");
  EXPECT_EQ(row({0x0c, 29, 32, 0x9d, 4, 0x9e, 2}, 0), "22 0 0") << "but it finds the frame";
  EXPECT_EQ(row({0x0e, 0xa0, 1, 0x9d, 20, 0x9e, 4}, 0), "22 0 0") << "too far apart";
  EXPECT_EQ(row({0x07, 30}, 0), "20 0 0") << "no caller";
  EXPECT_EQ(row({}, 0, "zRS"), "19 0 0") << "the kernel's signal frame";
}

TEST(RowTable, NeighboursThatSayTheSameAreOneRow) {
  const RowTable table = table_of({{.start = 0x1000, .size = 0x40, .program = {}},
                                   {.start = 0x1040, .size = 0x40, .program = {}},
                                   {.start = 0x1100, .size = 0x40, .program = {0x42, 0x83, 2}}});
  ASSERT_EQ(table.rows.size(), 4u);
  EXPECT_EQ(table.base, kBase + 0x1000);
  EXPECT_EQ(table.rows[1].kind, TACHO_UNWIND_NOTHING);
  EXPECT_EQ(table.rows[1].pc, 0x80u);
  EXPECT_EQ(table.rows[2].pc, 0x100u);
  EXPECT_EQ(table.rows[3].pc, 0x140u) << "where rbx is does not matter";
  EXPECT_EQ(table.functions, 3u);
  EXPECT_EQ(table.find_row(kBase + 0xfff), nullptr);
}

TEST(RowTable, WhoeverHasNoCallerEndsAStack) { EXPECT_EQ(row_at({0x07, 16}), "20 0 0"); }

TEST(RowTable, EntriesOfTheLinkageTableAreTold) {
  const Code expression{0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
  EXPECT_EQ(row_at(expression), "18 1 11");
  Code other = expression;
  other[8] = 0x3a;
  EXPECT_EQ(row_at(other), "18 1 10") << "with endbr64 in front";
  other[9] = 0x2b;
  EXPECT_EQ(row_at(other), "22 0 0") << "another comparison";
}

TEST(RowTable, AReturnAddressMayBeInARegister) {
  EXPECT_EQ(row_at({0x0e, 0, 0x09, 16, 5}), "23 0 5") << "vfork";
  EXPECT_EQ(row_at({0x0e, 16, 0x09, 16, 2}), "23 2 2");
  EXPECT_EQ(row_at({0x0d, 6, 0x09, 16, 5}), "22 0 0") << "and rsp is not known";
  EXPECT_EQ(row_at({0x0e, 0, 0x09, 16, 17}), "22 0 0") << "xmm0";
}

TEST(RowTable, AlignedStacksAreFollowed) {
  EXPECT_EQ(row_at({0x0c, 10, 0}), "10 0 0") << "lea 8(%rsp), %r10";
  EXPECT_EQ(row_at({0x0f, 3, 0x76, 0x78, 0x06, 0x10, 6, 2, 0x76, 0}), "16 -1 1");
  EXPECT_EQ(row_at({0x0f, 5, 0x77, 0x18, 0x06, 0x23, 8}), "17 3 0") << "rsp kept on the new stack";
  EXPECT_EQ(row_at({0x0f, 5, 0x77, 0x18, 0x06, 0x23, 16}), "22 0 0");
}

TEST(RowTable, TheKernelsSignalFrameIsKnownByItsRules) {
  const Code frame{0x0f, 4,    0x77, 0xa0, 0x01, 0x06, 0x10, 6,    3,
                   0x77, 0xf8, 0x00, 0x10, 16,   3,    0x77, 0xa8, 0x01};
  EXPECT_EQ(row_at(frame, 0, {}, "zRS"), "19 0 0");
  Code other = frame;
  other[17] = 0x02;
  EXPECT_EQ(row_at(other, 0, {}, "zRS"), "22 0 0");
  EXPECT_EQ(row_at({}, 0, test::kX86Entry, "zRS"), "22 0 0") << "a return address that is none";
}

TEST(RowTable, WhatARowCannotHoldIsSaid) {
  EXPECT_EQ(row_at({0x0e, 12}), "22 0 0") << "half a word";
  EXPECT_EQ(row_at({0x0e, 0x88, 0x80, 0x10}), "22 0 0") << "262152 bytes";
  EXPECT_EQ(row_at({0x0e, 0xf8, 0xff, 0x0f}), "7 32767 0");
  EXPECT_EQ(row_at({0x90, 2}), "22 0 0") << "the return address elsewhere";
  EXPECT_EQ(row_at({0x09, 6, 3}), "7 1 2") << "rbp in another register";
  EXPECT_EQ(row_at({0x86, 0x81, 0x01}), "7 1 2") << "rbp far away";
}

TEST(RowTable, ADamagedProgramIsKnownUpToTheDamage) {
  const Code program{0x44, 0x0e, 16, 0x44, 0x3f};
  EXPECT_EQ(row_at(program, 0), "7 1 0");
  EXPECT_EQ(row_at(program, 5), "7 2 0");
  EXPECT_EQ(row_at(program, 8), "22 0 0");
}

TEST(RowTable, FunctionsThatOverlapAreClipped) {
  const RowTable table = table_of({{.start = 0x1000, .size = 0x80, .program = {}},
                                   {.start = 0x1040, .size = 0x80, .program = {0x0e, 32}}});
  EXPECT_EQ(table.find_row(kBase + 0x107f)->cfa, 1);
  EXPECT_EQ(table.find_row(kBase + 0x1080)->cfa, 4);
  EXPECT_EQ(table.find_row(kBase + 0x10c0)->kind, TACHO_UNWIND_NOTHING);
}

TEST(RowTable, RowsAscendWhateverAFunctionSays) {
  Code program;
  for (int i = 0; i < 40; ++i)
    program.insert(program.end(), {0x48, 0x0e, static_cast<std::uint8_t>(8 + 8 * i)});
  const RowTable table = table_of({{.start = 0x1000, .size = 0x20, .program = program}});
  for (std::size_t i = 1; i < table.rows.size(); ++i) EXPECT_LT(table.rows[i - 1].pc, table.rows[i].pc);
  EXPECT_EQ(table.rows.back().pc, 0x20u) << "nothing after the end";
}

TEST(RowTable, LimitsHold) {
  const auto frames = test::eh_frame(
      {{.start = 0x1000, .size = 0x80, .program = {0x41, 0x0e, 16, 0x41, 0x0e, 24}}}, kSection);
  const CfiSection section{frames.bytes, kSection, CfiForm::EhFrame, std::endian::little};
  EXPECT_FALSE(build_row_table(section, {.most_rows = 1}));
  EXPECT_FALSE(build_row_table(section, {.stop = [] { return true; }}));
  EXPECT_TRUE(build_row_table(section, {.most_rows = 4}));
}

TEST(RowTable, ComesOutOfAFileByEitherWay) {
  for (const test::Headers headers : {test::Headers::Sections, test::Headers::SegmentsOnly}) {
    const std::string file = test::elf_image({{.start = 0x1000, .size = 0x40, .program = {0x41, 0x0e, 16}}},
                                             test::Search::Table, headers);
    const auto bytes = std::as_bytes(std::span(file));
    const auto image = ElfImage::in_memory({bytes.begin(), bytes.end()});
    ASSERT_TRUE(image);
    const auto table = row_table_of(*image);
    ASSERT_TRUE(table);
    EXPECT_EQ(table->rows.size(), 3u);
  }
}

RowTable table_of_file(const std::string& file) {
  const auto bytes = std::as_bytes(std::span(file));
  const auto image = ElfImage::in_memory({bytes.begin(), bytes.end()});
  auto table = image ? row_table_of(*image) : Result<RowTable>(image.error());
  EXPECT_TRUE(table);
  return table ? std::move(*table) : RowTable{};
}

constexpr std::uint64_t kInEhFrame = 0x1000, kInDebugFrame = 0x1100, kInBoth = 0x1200;

// A function in .eh_frame, one in .debug_frame, and one in both, with another rule in each.
const std::vector<Function> kOfEhFrame{{.start = kInEhFrame, .size = 0x40, .program = {0x0e, 16}},
                                       {.start = kInBoth, .size = 0x40, .program = {0x0e, 32}}};
const std::vector<Function> kOfDebugFrame{{.start = 0, .size = 0x2000, .program = {0x0e, 80}},  // left out
                                          {.start = kInDebugFrame, .size = 0x40, .program = {0x0e, 24}},
                                          {.start = kInBoth, .size = 0x40, .program = {0x0e, 40}}};

std::string cfa_by_offset(const RowTable& table) {
  std::string found;
  for (std::uint64_t place = kInEhFrame - 0x40; place < kInBoth + 0x80; place += 0x40) {
    const Row* const row = table.find_row(kBase + place);
    found += row == nullptr || row->kind == TACHO_UNWIND_NOTHING ? "-" : std::to_string(row->cfa);
  }
  return found;
}

TEST(RowTable, DebugFrameGivesTheRulesThatEhFrameLacks) {
  const auto image_of = [](const std::vector<Function>& in_eh_frame, const test::DebugFrame& debug = {}) {
    const std::string file =
        test::elf_image(in_eh_frame, test::Search::Table, test::Headers::Sections, {}, EM_X86_64, debug);
    const auto bytes = std::as_bytes(std::span(file));
    auto image = ElfImage::in_memory({bytes.begin(), bytes.end()});
    EXPECT_TRUE(image);
    return std::move(*image);
  };
  const test::DebugFrame debug{test::debug_frame(kOfDebugFrame)};
  const auto both = row_table_of(image_of(kOfEhFrame, debug));
  ASSERT_TRUE(both);
  EXPECT_EQ(cfa_by_offset(*both), "-2---3---4-");
  EXPECT_EQ(both->functions, 3u);
  EXPECT_TRUE(std::ranges::is_sorted(both->rows, std::ranges::less_equal{}, &Row::pc));
  EXPECT_EQ(both->rows.back().kind, TACHO_UNWIND_NOTHING);

  const auto beside_empty = row_table_of(image_of({}, debug));
  ASSERT_TRUE(beside_empty);
  EXPECT_EQ(cfa_by_offset(*beside_empty), "-----3---5-") << "an empty .eh_frame hides nothing";

  const ElfImage separate = image_of({}, debug);
  const auto with_debug_file = row_table_of(image_of(kOfEhFrame), {}, &separate);
  ASSERT_TRUE(with_debug_file);
  EXPECT_EQ(cfa_by_offset(*with_debug_file), "-2---3---4-");
  const auto alone = row_table_of(image_of(kOfEhFrame));
  const auto too_many = row_table_of(image_of(kOfEhFrame, debug), {.most_rows = 4});
  ASSERT_TRUE(alone && too_many);
  EXPECT_EQ(cfa_by_offset(*too_many), cfa_by_offset(*alone)) << ".eh_frame's rows stay";
  EXPECT_FALSE(row_table_of(image_of(kOfEhFrame), {.most_rows = 1}));

  // zlib's stored blocks: the bytes as they are, with a checksum.
  format::ByteWriter packed;
  packed.u32(ELFCOMPRESS_ZLIB).u32(0).u64(debug.bytes.size()).u64(1).u8(0x78).u8(1).u8(1);
  const auto size = static_cast<std::uint16_t>(debug.bytes.size());
  packed.u16(size).u16(static_cast<std::uint16_t>(~size)).bytes(debug.bytes);
  std::uint32_t a = 1, b = 0;
  for (const std::byte byte : debug.bytes) {
    a = (a + static_cast<std::uint32_t>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  for (const std::uint32_t part : {b >> 8, b, a >> 8, a}) packed.u8(static_cast<std::uint8_t>(part));
  const auto compressed = row_table_of(image_of(kOfEhFrame, {std::move(packed).take_bytes(), true}));
  ASSERT_TRUE(compressed);
  EXPECT_EQ(cfa_by_offset(*compressed), "-2---3---4-");
}

// The linker's order of .eh_frame is that of object files; the index is sorted by address.
TEST(RowTable, TheIndexGivesTheSameRowsAsAList) {
  const std::vector<Function> functions{{.start = 0x1800, .size = 0x40, .program = {0x41, 0x0e, 16}},
                                        {.start = 0x1000, .size = 0x40, .program = {0x42, 0x0e, 24}},
                                        {.start = 0x1400, .size = 0x40, .program = {0x43, 0x0e, 32}}};
  const RowTable indexed = table_of_file(test::elf_image(functions));
  const RowTable listed = table_of_file(test::elf_image(functions, test::Search::Index));
  EXPECT_EQ(indexed.functions, 3u);
  EXPECT_EQ(indexed.base, kBase + 0x1000);
  const auto texts = [](const RowTable& table) {
    std::vector<std::string> rows;
    for (const Row& row : table.rows)
      rows.push_back(std::to_string(row.pc) + " " + std::to_string(row.kind) + " " + std::to_string(row.cfa));
    return rows;
  };
  EXPECT_EQ(texts(indexed), texts(listed));
  EXPECT_EQ(indexed.rows.size(), 9u);
  // An entry that leads to no FDE, or to another one: the list is used.
  constexpr std::size_t kFirstFde = test::kHeader + 16;
  for (const std::uint32_t wrong : {0x7fffff00u, 0x10u}) {
    std::string file = test::elf_image(functions);
    std::memcpy(file.data() + kFirstFde, &wrong, sizeof wrong);
    EXPECT_EQ(texts(table_of_file(file)), texts(listed)) << wrong;
  }
  std::string file = test::elf_image(functions);
  std::memcpy(file.data() + kFirstFde, file.data() + kFirstFde + 16, 4);  // that of the last function
  EXPECT_EQ(texts(table_of_file(file)), texts(listed));
}

// Where ld.so begins nothing is described, and nobody called it.
TEST(RowTable, WhatIsNotDescribedAtTheEntryIsTheEndOfAStack) {
  const std::vector<Function> functions{{.start = 0x1100, .size = 0x40, .program = {}},
                                        {.start = 0x1400, .size = 0x40, .program = {}}};
  const auto kind_at = [&functions](std::uint64_t entry, std::uint64_t place) {
    std::string file = test::elf_image(functions);
    std::memcpy(file.data() + offsetof(Elf64_Ehdr, e_entry), &entry, sizeof entry);
    const auto bytes = std::as_bytes(std::span(file));
    const auto image = ElfImage::in_memory({bytes.begin(), bytes.end()});
    const auto table = image ? row_table_of(*image) : Result<RowTable>(image.error());
    if (!table) return std::string(table.error().what);
    EXPECT_TRUE(std::ranges::is_sorted(table->rows, std::ranges::less_equal{}, &Row::pc));
    const Row* const row = table->find_row(kBase + place);
    return row == nullptr ? std::string("none") : std::to_string(row->kind);
  };
  constexpr std::uint64_t kFirst = kBase + 0x1000, kGap = kBase + 0x1200, kBehind = kBase + 0x1480;
  EXPECT_EQ(kind_at(kGap, 0x1200), "20");
  EXPECT_EQ(kind_at(kGap, 0x123f), "20");
  EXPECT_EQ(kind_at(kGap, 0x11ff), "21");
  EXPECT_EQ(kind_at(kGap, 0x1240), "21");
  EXPECT_EQ(kind_at(kGap, 0x1100), "7");
  EXPECT_EQ(kind_at(kGap, 0x1400), "7");
  EXPECT_EQ(kind_at(kFirst, 0x1000), "20") << "before the first function";
  EXPECT_EQ(kind_at(kFirst, 0x1100), "7");
  EXPECT_EQ(kind_at(kBehind, 0x1480), "20") << "behind the last one";
  EXPECT_EQ(kind_at(kBehind, 0x14c0), "21");
  EXPECT_EQ(kind_at(kBase + 0x1140, 0x1140), "20") << "just after a function";
  EXPECT_EQ(kind_at(kBase + 0x1110, 0x1110), "7") << "what is described stays";
  EXPECT_EQ(kind_at(0, 0x1200), "21");
  EXPECT_EQ(kind_at(~std::uint64_t{0}, 0x1400), "7") << "no address of the file";
}

}  // namespace
}  // namespace tacho::unwind
