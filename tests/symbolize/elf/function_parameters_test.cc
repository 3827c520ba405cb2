// Parameters in DWARF that no compiler writes, made here byte by byte.
#include "symbolize/elf/function_parameters.h"

#include <gtest/gtest.h>

#include <ctime>
#include <limits>

#include "tests/symbolize/elf_maker.h"
#include "tests/symbolize/folder.h"

namespace tacho::symbolize {
namespace {

using test::abbreviation;
using test::number;
using test::repeated;

constexpr double kMostCpuSeconds = 5;
constexpr std::uint64_t kTypeAt = test::kFirstEntry;

const std::string kPackTag = "\x88\x82\1";  // DW_TAG_GNU_formal_parameter_pack as LEB128
const std::string kAbbreviations =
    abbreviation(
        2, DW_TAG_subprogram, true,
        {{DW_AT_low_pc, DW_FORM_addr}, {DW_AT_high_pc, DW_FORM_data8}, {DW_AT_frame_base, DW_FORM_exprloc}}) +
    abbreviation(
        3, DW_TAG_formal_parameter, false,
        {{DW_AT_name, DW_FORM_string}, {DW_AT_type, DW_FORM_ref4}, {DW_AT_location, DW_FORM_exprloc}}) +
    abbreviation(4, DW_TAG_base_type, false,
                 {{DW_AT_byte_size, DW_FORM_data1}, {DW_AT_encoding, DW_FORM_data1}}) +
    abbreviation(5, DW_TAG_structure_type, true, {{DW_AT_byte_size, DW_FORM_data1}}) +
    abbreviation(6, DW_TAG_member, false,
                 {{DW_AT_name, DW_FORM_string},
                  {DW_AT_type, DW_FORM_ref4},
                  {DW_AT_data_member_location, DW_FORM_data8}}) +
    number(7, 1) + kPackTag + number(1, 1) + number(DW_AT_sibling, 1) + number(DW_FORM_ref4, 1) +
    number(0, 2);

std::string number_type(unsigned encoding, unsigned bytes = 8) {
  return number(4, 1) + number(bytes, 1) + number(encoding, 1);
}
std::string member(std::string_view name, std::uint64_t type, std::uint64_t offset) {
  return number(6, 1) + std::string(name) + '\0' + number(type, 4) + number(offset, 8);
}
std::string structure(const std::string& members) {
  return number(5, 1) + number(8, 1) + members + number(0, 1);
}
std::string parameter(std::uint64_t type, const std::string& location) {
  return number(3, 1) + std::string("a") + '\0' + number(type, 4) + number(location.size(), 1) + location;
}
std::string function(const std::string& children) {
  return number(2, 1) + number(test::kUnitStart, 8) + number(0x100, 8) + number(1, 1) +
         number(DW_OP_call_frame_cfa, 1) + children + number(0, 1);
}
// An operation with a signed number of 64 bits.
std::string operation(unsigned atom, std::int64_t value) {
  std::string text = number(atom, 1);
  for (int i = 0; i < 9; ++i, value >>= 7) text += static_cast<char>(0x80 | (value & 0x7f));
  return text + static_cast<char>(value & 0x7f);
}

// The value of an argument of the function, or the error.
Result<ParameterValue> find(const std::string& entries, const std::string& wanted) {
  const test::Folder folder;
  folder.write("/x", test::elf_file(test::dwarf(kAbbreviations, entries)));
  auto parameters = FunctionParameters::open(std::move(*format::open_input(folder.path() + "/x")));
  if (!parameters) return std::move(parameters.error());
  auto found = parameters->find_values({test::kUnitStart}, "f", {wanted});
  if (!found) return std::move(found.error());
  return std::move(found->front());
}
std::string error_of(const std::string& entries, const std::string& wanted) {
  const auto found = find(entries, wanted);
  return found ? "" : found.error().what;
}

TEST(FunctionParameters, AStructInItselfIsNotVisitedForEver) {
  const std::string loop = structure(repeated(member("m", kTypeAt, 0), 12)) +
                           function(parameter(kTypeAt, operation(DW_OP_breg7, 8)));
  const std::string nameless = structure(repeated(member("", kTypeAt, 0), 12)) +
                               function(parameter(kTypeAt, operation(DW_OP_breg7, 8)));
  const std::clock_t start = std::clock();
  EXPECT_NE(error_of(loop, "a").find("is a struct"), std::string::npos);
  EXPECT_NE(error_of(nameless, "a.m").find("no member 'm'"), std::string::npos);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, kMostCpuSeconds);
}

// Each pack names the next one as its sibling, which is its first child as well.
TEST(FunctionParameters, PacksInPacksAreNotAllVisited) {
  constexpr std::uint64_t kCount = 40'000, kSize = 5;
  std::string packs;
  for (std::uint64_t at = kTypeAt + function("").size() - 1; packs.size() < kCount * kSize; at += kSize)
    packs += number(7, 1) + number(at + kSize, 4);
  const std::clock_t start = std::clock();
  EXPECT_NE(error_of(function(packs), "a").find("no arguments"), std::string::npos);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, kMostCpuSeconds);
}

TEST(FunctionParameters, AValueOutsideOfAnyStackIsNotRead) {
  const std::string type = number_type(DW_ATE_signed);
  const auto at = [&](unsigned atom, std::int64_t offset) {
    return find(type + function(parameter(kTypeAt, operation(atom, offset))), "a");
  };
  const auto near = at(DW_OP_fbreg, 16);
  ASSERT_TRUE(near) << near.error().what;
  EXPECT_EQ(near->displacement, 24);
  EXPECT_EQ(near->kind, ParameterValue::Kind::Signed);
  for (const unsigned atom : {unsigned{DW_OP_fbreg}, unsigned{DW_OP_breg7}}) {
    EXPECT_FALSE(at(atom, std::numeric_limits<std::int64_t>::max())) << atom;
    EXPECT_FALSE(at(atom, std::numeric_limits<std::int64_t>::min())) << atom;
  }
}

TEST(FunctionParameters, AMemberOutsideOfAnyStructIsNotRead) {
  const std::string type = number_type(DW_ATE_signed);
  const std::uint64_t struct_at = kTypeAt + type.size();
  const auto at = [&](std::uint64_t offset) {
    return find(type + structure(member("m", kTypeAt, offset)) +
                    function(parameter(struct_at, operation(DW_OP_breg7, 8))),
                "a.m");
  };
  const auto near = at(4);
  ASSERT_TRUE(near) << near.error().what;
  EXPECT_EQ(near->displacement, 12);
  const auto far = at(0x7fff'ffff'ffff'fffe);
  ASSERT_FALSE(far);
  EXPECT_NE(far.error().what.find("'m' is too far from its struct's start"), std::string::npos);
}

TEST(FunctionParameters, EachFloatingPointNumberIsRefused) {
  for (const unsigned encoding :
       {DW_ATE_float, DW_ATE_complex_float, DW_ATE_imaginary_float, DW_ATE_decimal_float}) {
    const auto found =
        find(number_type(encoding) + function(parameter(kTypeAt, operation(DW_OP_breg7, 8))), "a");
    ASSERT_FALSE(found) << encoding;
    EXPECT_NE(found.error().what.find("floating point"), std::string::npos) << found.error().what;
  }
}

// "x0", "[sp+8]", or why it cannot be read, of an argument in arguments_arm64.so.
std::string place_on_arm64(std::uint64_t entry, const std::string& wanted) {
  auto parameters = FunctionParameters::open(
      std::move(*format::open_input(std::string(TACHO_TEST_DATA) + "/arguments_arm64.so")));
  if (!parameters) return parameters.error().what;
  const auto found = parameters->find_values({entry}, "f", {wanted});
  if (!found) return found.error().what;
  const ParameterValue& value = found->front();
  const std::string name(value.register_name);
  return value.from == ParameterValue::From::Register
             ? name
             : "[" + name + "+" + std::to_string(value.displacement) + "]";
}

TEST(FunctionParameters, Arm64HasItsOwnCallingConvention) {
  constexpr std::uint64_t kMixed = 0x2c0, kPair = 0x2f0, kPoint = 0x310, kLarge = 0x340,
                          kReturnsLarge = 0x360, kOnStack = 0x380;
  EXPECT_EQ(place_on_arm64(kMixed, "a"), "x0");
  EXPECT_EQ(place_on_arm64(kMixed, "b"), "x1") << "x is in a floating-point register";
  EXPECT_EQ(place_on_arm64(kMixed, "text"), "x2");
  EXPECT_EQ(place_on_arm64(kPair, "both.second"), "x2");
  EXPECT_EQ(place_on_arm64(kPair, "after"), "x3");
  EXPECT_EQ(place_on_arm64(kPoint, "b"), "x1") << "a struct of two doubles takes two of their registers";
  EXPECT_EQ(place_on_arm64(kLarge, "after"), "x1") << "a large struct is passed by address";
  EXPECT_EQ(place_on_arm64(kReturnsLarge, "a"), "x0") << "x8 holds the address of the result";
  EXPECT_EQ(place_on_arm64(kOnStack, "h"), "x7");
  EXPECT_EQ(place_on_arm64(kOnStack, "i"), "[sp+0]");
  EXPECT_EQ(place_on_arm64(kOnStack, "j"), "[sp+8]");
}

}  // namespace
}  // namespace tacho::symbolize
