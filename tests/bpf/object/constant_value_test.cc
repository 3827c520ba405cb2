#include "bpf/object/constant_value.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

namespace tacho::bpf {
namespace {

using format::FieldKind;
using format::PayloadField;
using Part = ConstantFault::Part;

PayloadField field(const char* name, FieldKind kind, std::uint32_t bits, std::uint32_t bit_offset = 0) {
  PayloadField made;
  made.name = name;
  made.kind = kind;
  made.bit_size = bits;
  made.bit_offset = bit_offset;
  return made;
}

Global global(std::vector<PayloadField> fields, std::uint32_t size) {
  Global made;
  made.name = variable_of(fields.front().name);
  made.is_const = made.is_volatile = true;
  made.layout.size = size;
  made.layout.fields = std::move(fields);
  return made;
}

// What a variable of 16 bytes, all of them 0xee before, holds afterwards; or the fault.
struct Outcome {
  std::array<std::byte, 16> bytes{};
  std::optional<ConstantFault> fault;
  template <class T>
  T as(std::size_t at = 0) const {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
  }
};
Outcome put(const PayloadField& only, std::optional<std::string_view> value, std::string_view name = {}) {
  Outcome out;
  out.bytes.fill(std::byte{0xee});
  out.fault = put_constant(global({only}, 16), name.empty() ? only.name : name, value, out.bytes);
  if (out.fault) {
    EXPECT_EQ(out.bytes[0], std::byte{0xee}) << "a fault changes nothing";
  }
  return out;
}

TEST(ConstantValue, IntegersOfEverySizeAndSign) {
  EXPECT_EQ(put(field("n", FieldKind::Unsigned, 8), "255").as<std::uint8_t>(), 255u);
  EXPECT_EQ(put(field("n", FieldKind::Unsigned, 16), "0xFfff").as<std::uint16_t>(), 0xffffu);
  EXPECT_EQ(put(field("n", FieldKind::Unsigned, 32), "4096").as<std::uint32_t>(), 4096u);
  EXPECT_EQ(put(field("n", FieldKind::Unsigned, 64), "18446744073709551615").as<std::uint64_t>(), ~0ULL);
  EXPECT_EQ(put(field("n", FieldKind::Signed, 8), "-128").as<std::int8_t>(), -128);
  EXPECT_EQ(put(field("n", FieldKind::Signed, 32), "-1").as<std::int32_t>(), -1);
  EXPECT_EQ(put(field("n", FieldKind::Signed, 64), "-9223372036854775808").as<std::int64_t>(), INT64_MIN);
  EXPECT_EQ(put(field("n", FieldKind::Unsigned, 16), "1").as<std::uint32_t>(), 0xeeee0001u)
      << "its neighbours stay";
}

TEST(ConstantValue, OutOfRangeIsReportedWithTheRange) {
  const auto what = [](FieldKind kind, std::uint32_t bits, const char* text) {
    const auto fault = put(field("n", kind, bits), text).fault;
    if (fault) {
      EXPECT_EQ(fault->part, Part::Value);
    }
    return fault ? fault->what : "";
  };
  EXPECT_EQ(what(FieldKind::Unsigned, 8, "256"), "256 is out of range: u8 takes 0 to 255");
  EXPECT_EQ(what(FieldKind::Unsigned, 32, "-1"), "-1 is out of range: u32 takes 0 to 4294967295");
  EXPECT_EQ(what(FieldKind::Signed, 16, "32768"), "32768 is out of range: s16 takes -32768 to 32767");
  EXPECT_EQ(what(FieldKind::Signed, 64, "-9223372036854775809"),
            "-9223372036854775809 is out of range: s64 takes -9223372036854775808 to 9223372036854775807");
  EXPECT_EQ(what(FieldKind::Unsigned, 64, "18446744073709551616"),
            "18446744073709551616 is out of range: u64 takes 0 to 18446744073709551615");
  EXPECT_EQ(what(FieldKind::Unsigned, 64, "4k"), "'4k' is not a number; it is u64");
  EXPECT_EQ(what(FieldKind::Unsigned, 64, ""), "'' is not a number; it is u64");
  EXPECT_EQ(what(FieldKind::Unsigned, 64, "0x"), "'0x' is not a number; it is u64");
}

TEST(ConstantValue, Bools) {
  const auto flag = field("on", FieldKind::Bool, 8);
  EXPECT_EQ(put(flag, "true").as<std::uint8_t>(), 1u);
  EXPECT_EQ(put(flag, std::nullopt).as<std::uint8_t>(), 1u) << "the name alone";
  EXPECT_EQ(put(flag, "0").as<std::uint8_t>(), 0u);
  EXPECT_EQ(put(flag, "2").fault->what, "'2' is neither true nor false (1 nor 0)");
}

TEST(ConstantValue, TextKeepsItsNul) {
  auto comm = field("comm", FieldKind::Text, 8);
  comm.count = 8;
  const auto set = put(comm, "dd");
  EXPECT_EQ(std::memcmp(set.bytes.data(), "dd\0\0\0\0\0\0\xee", 9), 0);
  EXPECT_FALSE(put(comm, "1234567").fault);
  const auto fault = put(comm, "12345678").fault;
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->what, "it is too long: char[8] takes 7 letters");
  EXPECT_EQ(fault->at, 7u);
  EXPECT_FALSE(put(comm, "").fault);
}

TEST(ConstantValue, EnumsByName) {
  auto mode = field("mode", FieldKind::Enum, 32);
  mode.enumerators = {{0, "OFF"}, {5, "SLOW"}};
  EXPECT_EQ(put(mode, "SLOW").as<std::uint32_t>(), 5u);
  EXPECT_EQ(put(mode, "7").as<std::uint32_t>(), 7u) << "flags are combined";
  EXPECT_EQ(put(mode, "slow").fault->what, "there is no 'slow' in its enum, which has OFF SLOW");
  EXPECT_EQ(put(mode, "-1").fault->what, "-1 is out of range: enum takes 0 to 4294967295");
}

TEST(ConstantValue, ArraysWholeAndByElement) {
  auto ports = field("ports", FieldKind::Unsigned, 16);
  ports.count = 3;
  ports.is_array = true;
  auto set = put(ports, "80:443");
  EXPECT_EQ(set.as<std::uint16_t>(0), 80u);
  EXPECT_EQ(set.as<std::uint16_t>(2), 443u);
  EXPECT_EQ(set.as<std::uint16_t>(4), 0xeeeeu) << "the others keep their values";
  EXPECT_EQ(put(ports, "9", "ports[2]").as<std::uint16_t>(4), 9u);
  EXPECT_EQ(put(ports, "9", "ports[3]").fault->what, "ports has the elements 0 to 2");
}

TEST(ConstantValue, AFaultInAnArrayPointsAtItsElement) {
  auto ports = field("ports", FieldKind::Unsigned, 16);
  ports.count = 2;
  ports.is_array = true;
  std::array<std::byte, 16> bytes{};
  const auto fault = put_constant(global({ports}, 16), "ports", "80:x", bytes);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->at, 3u);
  EXPECT_EQ(bytes[0], std::byte{0}) << "nothing of it is set";
  EXPECT_EQ(put_constant(global({ports}, 16), "ports", "1:2:3", bytes)->at, 4u);
}

TEST(ConstantValue, MembersAndBitfields) {
  const auto limits =
      global({field("limits.low", FieldKind::Signed, 32), field("limits.a", FieldKind::Unsigned, 3, 32),
              field("limits.b", FieldKind::Unsigned, 5, 35)},
             8);
  std::array<std::byte, 8> bytes{};
  EXPECT_FALSE(put_constant(limits, "limits.low", "-2", bytes));
  EXPECT_FALSE(put_constant(limits, "limits.b", "31", bytes));
  EXPECT_EQ(bytes[4], std::byte{0xf8});
  EXPECT_EQ(put_constant(limits, "limits.a", "8", bytes)->what, "8 is out of range: u3 takes 0 to 7");
  EXPECT_EQ(put_constant(limits, "limits.c", "8", bytes)->what,
            "there is no 'limits.c'; limits has limits.low (s32), limits.a (u3), limits.b (u5)");
}

TEST(ConstantValue, FloatsAndMissingValuesAreRefusedInWords) {
  const auto fault = put(field("ratio", FieldKind::Float, 64), "0.5").fault;
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->what, "it is a floating-point number, which BPF programs cannot use");
  EXPECT_EQ(put(field("n", FieldKind::Unsigned, 32), std::nullopt).fault->what, "a value is missing: n=N");
}

TEST(ConstantValue, OutsideTheVariableIsDamage) {
  const auto fault = put(field("n", FieldKind::Unsigned, 64, 65), "1").fault;
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->part, Part::Name);
}

}  // namespace
}  // namespace tacho::bpf
