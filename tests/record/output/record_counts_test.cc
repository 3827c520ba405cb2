#include "record/output/record_counts.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/records/perf_abi.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

void add_sample(format::ByteWriter& out, std::uint64_t time) {
  out.u32(abi::kRecordSample).u16(0).u16(48).u64(1).u64(2).u64(3).u64(time).u64(5);
}

TEST(RecordCounts, CountsSamplesLossesAndTimes) {
  format::ByteWriter out;
  add_sample(out, 500);
  out.u32(abi::kRecordLost).u16(0).u16(24).u64(7).u64(11);
  add_sample(out, 400);
  out.u32(abi::kRecordComm).u16(0).u16(8);
  RecordCounts counts;
  EXPECT_TRUE(count_records(out.view(), counts));
  EXPECT_EQ(counts,
            (RecordCounts{.samples = 2, .lost = 11, .first_time = 400, .last_time = 500, .sideband = 1}))
      << "a LOST record without a time";
  format::ByteWriter later;
  for (const std::uint64_t time : {480, 450})
    later.u32(abi::kRecordLost).u16(0).u16(56).u64(7).u64(1).u64(9).u64(time).u64(0).u64(7);
  EXPECT_TRUE(count_records(later.view(), counts));
  EXPECT_EQ(counts, (RecordCounts{2, 13, 400, 500, 450, 480, 1}));
}

TEST(RecordCounts, WhatIsNotWholeIsRefused) {
  format::ByteWriter cut;
  cut.u32(abi::kRecordSample).u16(0).u16(48).u64(1);
  RecordCounts counts;
  EXPECT_FALSE(count_records(cut.view(), counts));
  format::ByteWriter zero;
  zero.u32(0).u16(0).u16(0);
  EXPECT_FALSE(count_records(zero.view(), counts)) << "a size below the header's would never move on";
}

// KSYMBOL of a name of 5 bytes and a trailer of two words; `more` words follow.
void add_symbol(format::ByteWriter& out, std::uint16_t more) {
  out.u32(abi::kRecordKsymbol).u16(0).u16(static_cast<std::uint16_t>(48 + 8 * more));
  out.u64(0xffffffffc0000000).u32(64).u16(1).u16(0).u64(0x006b6f6c62).u64(100).u64(200);
  for (std::uint16_t i = 0; i < more; ++i) out.u64(0x5555);
}

TEST(RecordCounts, BytesAfterTrailersOfBpfEventsAreCut) {
  format::ByteWriter out, expected;
  out.u64(0x1234);  // of an earlier look
  expected.u64(0x1234);
  for (const auto more : std::initializer_list<std::uint16_t>{4, 0, 12}) {
    add_symbol(out, more);
    add_symbol(expected, 0);
    for (format::ByteWriter* each : {&out, &expected})
      each->u32(abi::kRecordComm).u16(0).u16(24).u64(more).u64(100);
    out.u32(abi::kRecordBpfEvent).u16(0).u16(static_cast<std::uint16_t>(40 + 8 * more));
    expected.u32(abi::kRecordBpfEvent).u16(0).u16(40);
    for (format::ByteWriter* each : {&out, &expected}) each->u16(1).u16(0).u32(7).u64(9).u64(100).u64(200);
    for (std::uint16_t i = 0; i < more; ++i) out.u64(0x6666);
  }
  std::vector<std::byte> records(out.view().begin(), out.view().end());
  cut_behind_trailers(records, sizeof(std::uint64_t), 2 * sizeof(std::uint64_t));
  EXPECT_EQ(records, std::vector<std::byte>(expected.view().begin(), expected.view().end()));
}

TEST(RecordCounts, WhatIsNoRecordStaysAsItIs) {
  format::ByteWriter out;
  add_symbol(out, 2);
  out.u32(abi::kRecordKsymbol).u16(0).u16(4000).u64(1);
  std::vector<std::byte> records(out.view().begin(), out.view().end());
  cut_behind_trailers(records, 0, 2 * sizeof(std::uint64_t));
  format::ByteWriter expected;
  add_symbol(expected, 0);
  expected.u32(abi::kRecordKsymbol).u16(0).u16(4000).u64(1);
  EXPECT_EQ(records, std::vector<std::byte>(expected.view().begin(), expected.view().end()));
  std::vector<std::byte> piece(5);
  cut_behind_trailers(piece, 0, 16);
  EXPECT_EQ(piece.size(), 5u);
}

}  // namespace
}  // namespace tacho::record
