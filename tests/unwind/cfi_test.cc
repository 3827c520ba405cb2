#include "unwind/cfi.h"

#include <gtest/gtest.h>

#include "tests/unwind/cfi_image.h"

namespace tacho::unwind {
namespace {

using test::Code;
using test::Function;
using test::kBase;
using test::kText;

constexpr std::uint64_t kStart = kBase + kText;

// The row of one function's program, `offset` bytes into it.
std::optional<UnwindRow> row_of(const Code& program, std::uint64_t offset) {
  const auto frames = test::eh_frame({Function{.start = kText, .size = 0x100, .program = program}}, 0x402000);
  const CfiSection section{frames.bytes, 0x402000, CfiForm::EhFrame, std::endian::little};
  const auto fde = parse_fde(section, frames.places[0].second - section.address);
  EXPECT_TRUE(fde && fde->start == kStart && fde->end == kStart + 0x100);
  return fde ? evaluate_cfi(section, *fde, kStart + offset) : std::nullopt;
}
// That program's rule for a register; the row must exist.
Rule rule_of(const std::optional<UnwindRow>& row, std::uint8_t number) {
  if (!row) return {RuleKind::Undefined, -1, {}};
  for (const SavedRegister& saved : row->saved) {
    if (saved.number == number) return saved.rule;
  }
  return {};
}

TEST(Cfi, ARowHoldsFromItsAddressToTheNext) {
  const Code program{0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6};  // push rbp; mov rsp, rbp
  const auto entry = row_of(program, 0), pushed = row_of(program, 1), last = row_of(program, 3);
  ASSERT_TRUE(entry && pushed && last);
  EXPECT_EQ(entry->cfa.offset, 8);
  EXPECT_EQ(pushed->cfa.offset, 16);
  EXPECT_EQ(pushed->cfa.base, 7u);
  EXPECT_EQ(rule_of(pushed, 6).value, -16);
  EXPECT_EQ(rule_of(entry, 6).kind, RuleKind::Same);
  EXPECT_EQ(last->cfa.base, 7u) << "the register changes one byte later";
  EXPECT_EQ(row_of(program, 4)->cfa.base, 6u);
  EXPECT_EQ(rule_of(entry, 16).value, -8);
}

TEST(Cfi, StatesAreRememberedAndRestored) {
  const Code program{0x0a, 0x41, 0x0e, 32, 0x83, 3, 0x41, 0x0b};
  EXPECT_EQ(row_of(program, 1)->cfa.offset, 32);
  EXPECT_EQ(row_of(program, 2)->cfa.offset, 8);
  EXPECT_EQ(rule_of(row_of(program, 2), 3).kind, RuleKind::Same);
}

TEST(Cfi, ARestoredRegisterHasTheRuleOfTheEntry) {
  EXPECT_EQ(rule_of(row_of({0x90, 4, 0xd0}, 0), 16).value, -8);
  EXPECT_EQ(rule_of(row_of({0x05, 16, 4, 0x06, 16}, 0), 16).value, -8);
}

TEST(Cfi, EveryKindOfRuleIsRead) {
  EXPECT_EQ(rule_of(row_of({0x07, 16}, 0), 16).kind, RuleKind::Undefined);
  EXPECT_EQ(rule_of(row_of({0x83, 2, 0x08, 3}, 0), 3).kind, RuleKind::Same);
  const Rule moved = rule_of(row_of({0x09, 3, 12}, 0), 3);
  EXPECT_EQ(moved.kind, RuleKind::Register);
  EXPECT_EQ(moved.value, 12);
  EXPECT_EQ(rule_of(row_of({0x11, 3, 0x7f}, 0), 3).value, 8) << "-1 times -8";
  EXPECT_EQ(rule_of(row_of({0x2f, 3, 2}, 0), 3).value, 16) << "GNU_negative_offset_extended";
  const Rule value = rule_of(row_of({0x14, 3, 2}, 0), 3);
  EXPECT_EQ(value.kind, RuleKind::IsCfa);
  EXPECT_EQ(value.value, -16);
  EXPECT_EQ(rule_of(row_of({0x15, 3, 0x7e}, 0), 3).value, 16);
  const Rule expression = rule_of(row_of({0x10, 3, 2, 0x77, 8}, 0), 3);
  EXPECT_EQ(expression.kind, RuleKind::Expression);
  EXPECT_EQ(expression.expression.size(), 2u);
  EXPECT_EQ(rule_of(row_of({0x16, 3, 1, 0x30}, 0), 3).kind, RuleKind::ValueExpression);
}

TEST(Cfi, EveryFormOfCfaIsRead) {
  EXPECT_EQ(row_of({0x0c, 6, 24}, 0)->cfa.offset, 24);
  EXPECT_EQ(row_of({0x12, 6, 0x7e}, 0)->cfa.offset, 16) << "-2 times -8";
  EXPECT_EQ(row_of({0x13, 0x7d}, 0)->cfa.offset, 24);
  const auto row = row_of({0x0f, 2, 0x77, 8}, 0);
  EXPECT_EQ(row->cfa.kind, CfaRule::Kind::Expression);
  EXPECT_EQ(row->cfa.expression.size(), 2u);
}

TEST(Cfi, OperandsOfWhatDoesNotMatterAreSkipped) {
  EXPECT_EQ(row_of({0x2e, 0x90, 0x01, 0x0e, 40}, 0)->cfa.offset, 40) << "GNU_args_size";
  EXPECT_EQ(row_of({0x05, 60, 2, 0x0e, 40}, 0)->cfa.offset, 40) << "a vector register";
}

TEST(Cfi, SignedReturnAddressesAreToggled) {
  EXPECT_FALSE(row_of({}, 0)->signs_returns);
  EXPECT_TRUE(row_of({0x2d}, 0)->signs_returns);
  EXPECT_FALSE(row_of({0x2d, 0x41, 0x2d}, 1)->signs_returns);
}

TEST(Cfi, LongAdvancesAreRead) {
  EXPECT_EQ(row_of({0x02, 0x80, 0x0e, 16}, 0x80)->cfa.offset, 16);
  EXPECT_EQ(row_of({0x03, 0x80, 0, 0x0e, 16}, 0x7f)->cfa.offset, 8);
  EXPECT_EQ(row_of({0x04, 0x80, 0, 0, 0, 0x0e, 16}, 0x80)->cfa.offset, 16);
}

TEST(Cfi, DamagedProgramsGiveNoRow) {
  EXPECT_FALSE(row_of({0x3f}, 0)) << "an unknown instruction";
  EXPECT_FALSE(row_of({0x0b}, 0)) << "nothing was remembered";
  EXPECT_FALSE(row_of({0x0f, 0x70}, 0)) << "an expression longer than the program";
  EXPECT_FALSE(row_of(Code(100, 0x0a), 0)) << "states remembered without end";
  EXPECT_FALSE(row_of({0x1d, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 0)) << "past the last address";
}

TEST(Cfi, DebugFrameHasAbsoluteAddresses) {
  format::ByteWriter out;
  out.u32(20).u32(0xffffffff).u8(4).u8(0).u8(8).u8(0).u8(1).u8(0x78).u8(16);
  out.bytes(test::as_bytes(test::kX86Entry)).zeros(4);
  const std::uint64_t at = out.size();
  out.u32(24).u32(0).u64(kStart).u64(0x40).bytes(test::as_bytes({0x41, 0x0e, 16, 0}));
  const CfiSection section{out.view(), 0, CfiForm::DebugFrame, std::endian::little};
  const auto fdes = list_fdes(section);
  ASSERT_EQ(fdes.size(), 1u);
  EXPECT_EQ(fdes[0].offset, at);
  const auto fde = parse_fde(section, at);
  ASSERT_TRUE(fde);
  EXPECT_EQ(evaluate_cfi(section, *fde, kStart + 1)->cfa.offset, 16);
}

TEST(Cfi, WideEntriesAreRead) {
  format::ByteWriter out;
  out.u32(0xffffffff).u64(24).u64(~std::uint64_t{0}).u8(3).u8(0).u8(1).u8(0x78).u8(16);
  out.bytes(test::as_bytes(test::kX86Entry)).zeros(6);
  const std::uint64_t at = out.size();
  out.u32(0xffffffff).u64(24).u64(0).u64(kStart).u64(0x40);
  const CfiSection section{out.view(), 0, CfiForm::DebugFrame, std::endian::little};
  const auto fde = parse_fde(section, at);
  ASSERT_TRUE(fde);
  EXPECT_EQ(evaluate_cfi(section, *fde, kStart)->cfa.offset, 8);
}

TEST(Cfi, FdesAreListedInOrderOfTheirFunctions) {
  const auto frames = test::eh_frame({Function{.start = 0x1200, .size = 16, .program = {}},
                                      Function{.start = 0x1100, .size = 16, .program = {}}},
                                     0x402000);
  const auto fdes = list_fdes({frames.bytes, 0x402000, CfiForm::EhFrame, std::endian::little});
  ASSERT_EQ(fdes.size(), 2u);
  EXPECT_EQ(fdes[0].start, kBase + 0x1100);
  EXPECT_EQ(fdes[1].start, kBase + 0x1200);
}

TEST(Cfi, ASectionCutAnywhereGivesOnlyWhatIsWhole) {
  const auto frames = test::eh_frame({Function{.start = 0x1100, .size = 16, .program = {0x41, 0x0e, 16}},
                                      Function{.start = 0x1200, .size = 16, .program = {}}},
                                     0x402000);
  const std::size_t whole = frames.bytes.size();
  for (std::size_t size = 0; size < whole; ++size) {
    const CfiSection section{format::Bytes(frames.bytes).first(size), 0x402000, CfiForm::EhFrame,
                             std::endian::little};
    EXPECT_LE(list_fdes(section).size(), 2u);
    for (std::uint64_t offset = 0; offset < whole; ++offset) {
      if (const auto fde = parse_fde(section, offset)) {
        EXPECT_EQ(fde->end - fde->start, 16u) << size;
      }
    }
  }
}

}  // namespace
}  // namespace tacho::unwind
