#include "record/output/record_walk.h"

#include <gtest/gtest.h>

#include "format/byte_writer.h"
#include "format/perf_abi.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

void add_sample(format::ByteWriter& out, std::uint64_t time) {
  out.u32(abi::kRecordSample).u16(0).u16(48).u64(1).u64(2).u64(3).u64(time).u64(5);
}

TEST(RecordWalk, CountsSamplesLossesAndTimes) {
  format::ByteWriter out;
  add_sample(out, 500);
  out.u32(abi::kRecordLost).u16(0).u16(24).u64(7).u64(11);
  add_sample(out, 400);
  out.u32(abi::kRecordComm).u16(0).u16(8);
  RecordCounts counts;
  EXPECT_TRUE(count_records(out.view(), counts));
  EXPECT_EQ(counts, (RecordCounts{.samples = 2, .lost = 11, .first_time = 400, .last_time = 500, .told = 1}))
      << "a LOST record without a time";
  format::ByteWriter later;
  for (const std::uint64_t time : {480, 450})
    later.u32(abi::kRecordLost).u16(0).u16(56).u64(7).u64(1).u64(9).u64(time).u64(0).u64(7);
  EXPECT_TRUE(count_records(later.view(), counts));
  EXPECT_EQ(counts, (RecordCounts{2, 13, 400, 500, 450, 480, 1}));
}

TEST(RecordWalk, WhatIsNotWholeIsRefused) {
  format::ByteWriter cut;
  cut.u32(abi::kRecordSample).u16(0).u16(48).u64(1);
  RecordCounts counts;
  EXPECT_FALSE(count_records(cut.view(), counts));
  format::ByteWriter zero;
  zero.u32(0).u16(0).u16(0);
  EXPECT_FALSE(count_records(zero.view(), counts)) << "a size below the header's would never move on";
}

}  // namespace
}  // namespace tacho::record
