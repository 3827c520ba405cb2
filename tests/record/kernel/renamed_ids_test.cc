#include "record/kernel/renamed_ids.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <initializer_list>

#include "format/byte_writer.h"

namespace tacho::record {
namespace {

void put(format::ByteWriter& out, std::uint32_t type, std::initializer_list<std::uint64_t> words) {
  out.u32(type).u16(0).u16(static_cast<std::uint16_t>(8 + 8 * words.size()));
  for (const std::uint64_t word : words) out.u64(word);
}

std::vector<std::byte> records(std::uint64_t id) {
  format::ByteWriter out;
  put(out, PERF_RECORD_SAMPLE, {id, 70, 7});    // id, and two fields that look like numbers
  put(out, PERF_RECORD_COMM, {7, 70, id});      // what it is about, and a trailer that ends with the id
  put(out, PERF_RECORD_LOST, {id, 7, 70, id});  // whose, how many, trailer
  put(out, PERF_RECORD_THROTTLE, {7, id, id, 70, id});
  put(out, PERF_RECORD_SWITCH, {id});
  put(out, PERF_RECORD_SAMPLE, {8, 7, 7});  // of another event
  return std::move(out).take();
}

TEST(RenamedIds, EveryPlaceOfARecordThatSaysWhoseItIs) {
  RenamedIds ids;
  ids.add(7, 1);
  auto all = records(7);
  ids.apply(all, 0);
  EXPECT_EQ(all, records(1)) << "and nothing else";
}

TEST(RenamedIds, WhatStandsBeforeIsLeftAlone) {
  RenamedIds ids;
  ids.add(7, 1);
  auto all = records(7);
  const auto added = records(7);
  const std::size_t begin = all.size();
  all.insert(all.end(), added.begin(), added.end());
  ids.apply(all, begin);
  auto expected = records(7);
  const auto renamed = records(1);
  expected.insert(expected.end(), renamed.begin(), renamed.end());
  EXPECT_EQ(all, expected);
}

TEST(RenamedIds, WhatIsNoRecordEndsIt) {
  RenamedIds ids;
  ids.add(7, 1);
  for (const unsigned size : {0U, 8U, 4000U}) {
    format::ByteWriter out;
    out.u32(PERF_RECORD_SAMPLE).u16(0).u16(static_cast<std::uint16_t>(size)).u64(7).u64(7);
    auto bytes = std::move(out).take();
    const auto before = bytes;
    ids.apply(bytes, 0);
    EXPECT_EQ(bytes, before) << size;
  }
  std::vector<std::byte> few(5);
  ids.apply(few, 0);
  ids.apply(few, 5);
}

}  // namespace
}  // namespace tacho::record
