#include "symbolize/unwind/dwarf_expression.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace tacho::symbolize {
namespace {

class SomeFrame final : public ExpressionContext {
 public:
  std::optional<std::uint64_t> register_value(std::uint64_t number) const override {
    return at(registers, number);
  }
  std::optional<std::uint64_t> memory(std::uint64_t address) const override { return at(words, address); }

  std::map<std::uint64_t, std::uint64_t> registers{{7, 0x1000}, {16, 0x40103b}}, words{{0x1010, 0x2000}};

 private:
  static std::optional<std::uint64_t> at(const std::map<std::uint64_t, std::uint64_t>& map,
                                         std::uint64_t key) {
    const auto found = map.find(key);
    return found == map.end() ? std::nullopt : std::optional(found->second);
  }
};

std::optional<ExpressionResult> evaluate(const std::vector<std::uint8_t>& code, std::uint64_t initial = 0) {
  return evaluate_expression(std::as_bytes(std::span(code)), initial, SomeFrame());
}
std::uint64_t value(const std::vector<std::uint8_t>& code, std::uint64_t initial = 0) {
  const auto result = evaluate(code, initial);
  EXPECT_TRUE(result && !result->is_register);
  return result ? result->value : 0;
}

TEST(DwarfExpression, AnEmptyOneGivesTheInitialValue) { EXPECT_EQ(value({}, 42), 42u); }

TEST(DwarfExpression, ConstantsAreWidenedByTheirSign) {
  EXPECT_EQ(value({0x08, 0xff}), 255u);
  EXPECT_EQ(value({0x09, 0xff}), ~std::uint64_t{0});
  EXPECT_EQ(value({0x0b, 0xfe, 0xff}), ~std::uint64_t{1});
  EXPECT_EQ(value({0x0c, 0xff, 0xff, 0xff, 0xff}), 0xffffffffu);
  EXPECT_EQ(value({0x10, 0xe5, 0x8e, 0x26}), 624485u);
  EXPECT_EQ(value({0x11, 0x7f}), ~std::uint64_t{0});
}

TEST(DwarfExpression, AProcedureLinkageEntryDependsOnTheAddressInIt) {
  // rsp + 8 + ((rip & 15) >= 11) * 8: after the push the return address lies one word higher.
  EXPECT_EQ(value({0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}), 0x1010u);
}

TEST(DwarfExpression, MemoryIsReadAtAnAddress) {
  EXPECT_EQ(value({0x77, 0x10, 0x06}), 0x2000u);
  EXPECT_EQ(value({0x77, 0x10, 0x94, 1}), 0u);
  EXPECT_EQ(value({0x77, 0x10, 0x94, 2}), 0x2000u);
}

TEST(DwarfExpression, TheStackIsRearranged) {
  EXPECT_EQ(value({0x31, 0x32, 0x16, 0x1c}), 1u) << "swap: 2 - 1";
  EXPECT_EQ(value({0x31, 0x32, 0x33, 0x17, 0x1c}), static_cast<std::uint64_t>(-1)) << "rot: 3 1 2, 1 - 2";
  EXPECT_EQ(value({0x35, 0x12, 0x22}), 10u);
  EXPECT_EQ(value({0x35, 0x36, 0x14, 0x22}), 11u);
  EXPECT_EQ(value({0x35, 0x36, 0x37, 0x15, 2}), 5u);
  EXPECT_EQ(value({0x35, 0x36, 0x13}), 5u);
}

TEST(DwarfExpression, DivisionHasAnAnswerForEveryDivisor) {
  EXPECT_EQ(value({0x11, 0x78, 0x32, 0x1b}), static_cast<std::uint64_t>(-4));
  EXPECT_EQ(value({0x35, 0x30, 0x1b}), 0u);
  EXPECT_EQ(value({0x35, 0x30, 0x1d}), 0u);
  EXPECT_EQ(value({0x31, 0x08, 63, 0x24, 0x09, 0xff, 0x1b}), std::uint64_t{1} << 63);
}

TEST(DwarfExpression, BranchesSkip) {
  EXPECT_EQ(value({0x31, 0x28, 1, 0, 0x35, 0x36}), 6u);
  EXPECT_EQ(value({0x2f, 1, 0, 0x35, 0x37}), 7u);
}

TEST(DwarfExpression, ARegisterIsNamedNotRead) {
  const auto result = evaluate({0x53});
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->is_register);
  EXPECT_EQ(result->value, 3u);
}

TEST(DwarfExpression, WhatCannotBeEvaluatedGivesNothing) {
  EXPECT_FALSE(evaluate({0x22})) << "one value for two";
  EXPECT_FALSE(evaluate({0x13, 0x13}));
  EXPECT_FALSE(evaluate({0x70, 0})) << "an unknown register";
  EXPECT_FALSE(evaluate({0x31, 0x06})) << "unmapped memory";
  EXPECT_FALSE(evaluate({0x0e, 1, 2})) << "a number that is cut off";
  EXPECT_FALSE(evaluate({0x77})) << "its offset is missing";
  EXPECT_FALSE(evaluate({0x91, 0})) << "fbreg needs a function's debug information";
  EXPECT_FALSE(evaluate({0x2f, 0xf0, 0xff})) << "a jump before the start";
  EXPECT_FALSE(evaluate({0x2f, 0x10, 0})) << "a jump past the end";
  EXPECT_FALSE(evaluate({0x35, 0x15, 9}));
  EXPECT_FALSE(evaluate({0x77, 0x10, 0x94, 9}));
}

TEST(DwarfExpression, ALoopEnds) { EXPECT_FALSE(evaluate({0x2f, 0xfd, 0xff})); }

TEST(DwarfExpression, TheStackIsBounded) { EXPECT_FALSE(evaluate(std::vector<std::uint8_t>(100, 0x31))); }

}  // namespace
}  // namespace tacho::symbolize
