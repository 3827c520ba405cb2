#include "bpf/object/summary_layout.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tacho::bpf {
namespace {

using format::FieldKind;
using format::PayloadField;
using format::PayloadSchema;

PayloadField field(const char* name, std::uint32_t bit_offset, std::uint32_t bits, const char* role = "",
                   std::uint32_t count = 1) {
  PayloadField made;
  made.name = name;
  made.bit_offset = bit_offset;
  made.bit_size = bits;
  made.role = role;
  made.count = count;
  made.is_array = count != 1;
  return made;
}
PayloadSchema type(std::uint32_t size, std::vector<PayloadField> fields) {
  return {"", "type", size, std::move(fields)};
}

template <class Number>
std::vector<std::byte> bytes(std::initializer_list<Number> numbers) {
  std::vector<std::byte> made(numbers.size() * sizeof(Number));
  std::memcpy(made.data(), numbers.begin(), made.size());
  return made;
}

struct Expanded {
  std::vector<SummaryLayout::Sample> samples;
  void expand(const SummaryLayout& layout, format::Bytes key, format::Bytes value,
              format::Bytes before = {}) {
    samples.clear();
    layout.expand(key, value, before,
                  [this](const SummaryLayout::Sample& sample) { samples.push_back(sample); });
  }
  std::uint64_t number(const SummaryLayout& layout, const std::string& name, std::size_t sample = 0) const {
    for (const PayloadField& each : layout.schema().fields) {
      if (each.name != name) continue;
      std::uint64_t number = 0;
      std::memcpy(&number, samples.at(sample).payload.data() + each.bit_offset / 8, each.bit_size / 8);
      return number;
    }
    ADD_FAILURE() << "no field " << name;
    return 0;
  }
};
const PayloadField& field_of(const SummaryLayout& layout, const std::string& name) {
  static const PayloadField none;
  for (const PayloadField& each : layout.schema().fields)
    if (each.name == name) return each;
  ADD_FAILURE() << "no field " << name;
  return none;
}

TEST(SummaryLayout, ANumberAndACountNeedNoTags) {
  const SummaryLayout layout(
      {"sizes", "map", type(4, {field("(key)", 0, 32)}), type(8, {field("(value)", 0, 64)})}, 4, 8);
  EXPECT_EQ(field_of(layout, "value").role, "value");
  EXPECT_EQ(field_of(layout, "count").role, "count");
  Expanded made;
  made.expand(layout, bytes<std::uint32_t>({4096}), bytes<std::uint64_t>({7}));
  ASSERT_EQ(made.samples.size(), 1u);
  EXPECT_EQ(made.number(layout, "value"), 4096u);
  EXPECT_EQ(made.number(layout, "count"), 7u);
  EXPECT_EQ(made.samples[0].period, 7u);
  made.expand(layout, bytes<std::uint32_t>({4096}), bytes<std::uint64_t>({7}), bytes<std::uint64_t>({5}));
  EXPECT_EQ(made.number(layout, "count"), 2u) << "what came since the last reading";
  made.expand(layout, bytes<std::uint32_t>({4096}), bytes<std::uint64_t>({7}), bytes<std::uint64_t>({7}));
  EXPECT_TRUE(made.samples.empty());
  made.expand(layout, bytes<std::uint32_t>({4096}), bytes<std::uint64_t>({3}), bytes<std::uint64_t>({7}));
  EXPECT_EQ(made.number(layout, "count"), 3u) << "deleted, and made anew";
}

TEST(SummaryLayout, RolesOfKeyAndValue) {
  PayloadField bits = field("op", 96, 3);
  const SummaryLayout layout(
      {"calls", "map",
       type(20, {field("pid", 0, 32), field("stack", 32, 32, "stack:kernel"), field("slot", 64, 32, "log2"),
                 bits, field("user", 128, 32, "stack")}),
       type(24, {field("n", 0, 64, "count"), field("total_ns", 64, 64, "sum"),
                 field("worst_ns", 128, 64, "max")})},
      20, 24);
  EXPECT_EQ(layout.stack_maps(), (std::vector<std::string>{"kernel", ""}));
  EXPECT_EQ(field_of(layout, "value").format, "log2");
  EXPECT_EQ(field_of(layout, "pid").role, "key");
  Expanded made;
  made.expand(layout, bytes<std::uint32_t>({41, 5, 12, 0x1d, static_cast<std::uint32_t>(-17)}),
              bytes<std::uint64_t>({3, 900, 500}), bytes<std::uint64_t>({1, 100, 400}));
  ASSERT_EQ(made.samples.size(), 1u);
  EXPECT_EQ(made.samples[0].process, 41u);
  EXPECT_EQ(made.samples[0].thread, 41u);
  EXPECT_EQ(made.samples[0].stacks, (std::vector<std::int64_t>{5, -17}));
  EXPECT_EQ(layout.stack_key_bytes(), (std::vector<std::uint32_t>{4, 4}));
  EXPECT_EQ(made.samples[0].period, 800u) << "the sum weighs more than the count";
  EXPECT_EQ(made.number(layout, "value"), 4096u);
  EXPECT_EQ(made.number(layout, "op"), 5u) << "bits, as a whole byte";
  EXPECT_EQ(made.number(layout, "n"), 2u);
  EXPECT_EQ(made.number(layout, "worst_ns"), 500u);
}

TEST(SummaryLayout, ACgroupIsOfTheSample) {
  const SummaryLayout layout(
      {"counts", "map", type(16, {field("group", 0, 64, "cgroup"), field("pid", 64, 32)}),
       type(8, {field("(value)", 0, 64)})},
      16, 8);
  EXPECT_TRUE(layout.has_cgroup());
  EXPECT_EQ(layout.schema().fields.size(), 2u) << "pid and count";
  Expanded made;
  made.expand(layout, bytes<std::uint64_t>({4711, 7}), bytes<std::uint64_t>({3}));
  ASSERT_EQ(made.samples.size(), 1u);
  EXPECT_EQ(made.samples[0].cgroup, 4711u);
  EXPECT_EQ(made.samples[0].process, 7u);
}

TEST(SummaryLayout, AnArrayOfSlotsIsASampleForEach) {
  const SummaryLayout layout(
      {"lat", "map", type(4, {field("dev", 0, 32)}), type(16, {field("slots", 0, 32, "linear:10", 4)})}, 4,
      16);
  Expanded made;
  made.expand(layout, bytes<std::uint32_t>({8}), bytes<std::uint32_t>({2, 0, 0, 9}),
              bytes<std::uint32_t>({1, 0, 0, 9}));
  ASSERT_EQ(made.samples.size(), 1u);
  made.expand(layout, bytes<std::uint32_t>({8}), bytes<std::uint32_t>({2, 0, 0, 9}));
  ASSERT_EQ(made.samples.size(), 2u);
  EXPECT_EQ(made.number(layout, "value", 1), 30u);
  EXPECT_EQ(made.number(layout, "count", 1), 9u);
  EXPECT_EQ(made.number(layout, "dev", 1), 8u);
  auto sum = bytes<std::uint32_t>({2, 0, 0, 9});
  layout.add_up(sum, bytes<std::uint32_t>({1, 5, 0, 1}));
  EXPECT_EQ(sum, bytes<std::uint32_t>({3, 5, 0, 10}));
}

TEST(SummaryLayout, NumbersOfCpusAreAddedUp) {
  const SummaryLayout layout(
      {"calls", "map", type(4, {field("(key)", 0, 32)}),
       type(24, {field("n", 0, 64, "count"), field("live", 64, 64, "live"), field("worst", 128, 64, "max")})},
      4, 24);
  EXPECT_TRUE(layout.is_live());
  auto sum = bytes<std::uint64_t>({0, 0, 0});
  layout.add_up(sum, bytes<std::uint64_t>({2, 100, 7}));
  layout.add_up(sum, bytes<std::uint64_t>({3, static_cast<std::uint64_t>(-40), 5}));
  EXPECT_EQ(sum, bytes<std::uint64_t>({5, 60, 7}));
}

TEST(SummaryLayout, WhatGoesUpAndDownHasACountOfItsOwn) {
  const SummaryLayout layout(
      {"alloc", "map", type(16, {field("pid", 0, 64), field("stack", 64, 64, "stack:stacks")}),
       type(24,
            {field("bytes", 0, 64, "live"), field("blocks", 64, 64, "live:count"), field("made", 128, 64)})},
      16, 24);
  EXPECT_TRUE(layout.is_live());
  EXPECT_EQ(layout.stack_maps(), std::vector<std::string>{"stacks"});
  EXPECT_EQ(layout.stack_key_bytes(), std::vector<std::uint32_t>{8}) << "a key of the program's own";
  EXPECT_EQ(field_of(layout, "bytes").role, "sum");
  EXPECT_EQ(field_of(layout, "blocks").role, "count");
  Expanded made;
  made.expand(layout, bytes<std::uint64_t>({41, 0x123456789a}), bytes<std::uint64_t>({700, 7, 9}),
              bytes<std::uint64_t>({900, 9, 9}));
  ASSERT_EQ(made.samples.size(), 1u);
  EXPECT_EQ(made.samples[0].stacks, std::vector<std::int64_t>{0x123456789a});
  EXPECT_EQ(made.samples[0].period, 700u) << "what is there, and not what came";
  EXPECT_EQ(made.samples[0].process, 41u);
  EXPECT_EQ(made.number(layout, "blocks"), 7u);
  EXPECT_EQ(made.number(layout, "made"), 9u);
  made.samples.clear();
  made.expand(layout, bytes<std::uint64_t>({41, 5}), bytes<std::uint64_t>({0, 0, 9}));
  EXPECT_TRUE(made.samples.empty()) << "nothing is left";
  made.expand(layout, bytes<std::uint64_t>({41, 5}), bytes<std::uint64_t>({0, 2, 9}));
  EXPECT_EQ(made.samples.size(), 1u) << "blocks without bytes";
}

TEST(SummaryLayout, TypesThatBtfDoesNotHaveAreHex) {
  const SummaryLayout layout({"calls", "map", {}, {}}, 6, 8);
  EXPECT_EQ(field_of(layout, "key").format, "hex");
  EXPECT_EQ(field_of(layout, "count").role, "count");
  Expanded made;
  made.expand(layout, bytes<std::uint8_t>({1, 2, 3, 4, 5, 6}), bytes<std::uint64_t>({9}));
  EXPECT_EQ(made.samples.at(0).period, 9u);
  const SummaryLayout odd({"calls", "map", type(4, {field("a", 0, 32)}), {}}, 8, 3);
  made.expand(odd, bytes<std::uint64_t>({1}), bytes<std::uint8_t>({1, 2, 3}));
  EXPECT_EQ(made.samples.size(), 1u) << "of another size than the kernel's";
}

}  // namespace
}  // namespace tacho::bpf
