#include "format/records/sample.h"

#include <gtest/gtest.h>

#include "format/base/byte_writer.h"
#include "format/records/record.h"

namespace tacho::format {
namespace {

RecordView sample_view(const ByteWriter& out, std::uint32_t type = abi::kRecordSample) {
  RecordView record;
  record.type = type;
  record.misc = abi::kCpumodeUser;
  record.bytes = out.view();
  return record;
}

// A sample with every field there is, in the kernel's order; each value is the number of its place.
constexpr std::uint64_t kEveryField = (1ULL << 25) - 1 - abi::kSampleWeightStruct;

EventAttr full_attr() {
  EventAttr attr;
  attr.sample_type = kEveryField;
  attr.read_format =
      abi::kReadTimeEnabled | abi::kReadTimeRunning | abi::kReadId | abi::kReadGroup | abi::kReadLost;
  attr.branch_sample_type = abi::kBranchHwIndex | abi::kBranchCounters;
  attr.sample_regs_user = 0b101;
  attr.sample_regs_intr = 0b1;
  return attr;
}

ByteWriter full_sample() {
  ByteWriter out;
  out.u32(abi::kRecordSample).u16(abi::kCpumodeUser).u16(0);
  out.u64(1).u64(2).u32(3).u32(4).u64(5).u64(6).u64(7).u64(8).u32(9).u32(0).u64(10);  // identifier .. period
  out.u64(2).u64(11).u64(12).u64(13).u64(14).u64(15).u64(16).u64(17).u64(18);         // read, a group of two
  out.u64(3).u64(abi::kContextUser).u64(19).u64(20);                                  // callchain
  out.u32(12).u64(21).u32(22);                                                        // raw
  out.u64(2).u64(23);                                                                 // branches, hw index
  for (std::uint64_t i = 0; i < 6; ++i) out.u64(24 + i);
  out.u64(30).u64(31);                  // their counters
  out.u64(2).u64(32).u64(33);           // user registers
  out.u64(16).u64(34).u64(35).u64(9);   // user stack, 9 bytes of it valid
  out.u64(36).u64(37).u64(38);          // weight, data source, transaction
  out.u64(1).u64(39);                   // interrupt registers
  out.u64(40).u64(41).u64(42).u64(43);  // physical address, cgroup, page sizes
  out.u64(3).u8('a').u8('u').u8('x');   // aux
  return out;
}

TEST(Sample, EveryFieldIsFoundAtItsPlace) {
  const ByteWriter bytes = full_sample();
  const auto sample = parse_sample(sample_view(bytes), full_attr());
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->identifier, 7u) << "ID stands behind IDENTIFIER";
  EXPECT_EQ(sample->ip, 2u);
  EXPECT_EQ(sample->pid, 3u);
  EXPECT_EQ(sample->tid, 4u);
  EXPECT_EQ(sample->time, 5u);
  EXPECT_EQ(sample->addr, 6u);
  EXPECT_EQ(sample->stream_id, 8u);
  EXPECT_EQ(sample->cpu, 9u);
  EXPECT_EQ(sample->period, 10u);
  ASSERT_EQ(sample->read.size(), 2u);
  EXPECT_EQ(sample->read.time_enabled, 11u);
  EXPECT_EQ(sample->read.time_running, 12u);
  EXPECT_EQ(sample->read.entry(1).value, 16u);
  EXPECT_EQ(sample->read.entry(1).id, 17u);
  EXPECT_EQ(sample->read.entry(1).lost, 18u);
  ASSERT_EQ(sample->callchain.size(), 3u);
  EXPECT_EQ(sample->callchain[2], 20u);
  EXPECT_EQ(sample->raw.size(), 12u);
  EXPECT_EQ(sample->branch_hw_index, 23u);
  ASSERT_EQ(sample->branch_count(), 2u);
  EXPECT_EQ(sample->branch(1).flags, 29u);
  EXPECT_EQ(sample->branch_counters[1], 31u);
  EXPECT_EQ(sample->user_registers.abi, 2u);
  EXPECT_EQ(sample->user_registers.values[1], 33u);
  EXPECT_EQ(sample->user_stack.size(), 9u);
  EXPECT_EQ(sample->weight, 36u);
  EXPECT_EQ(sample->data_source, 37u);
  EXPECT_EQ(sample->transaction, 38u);
  EXPECT_EQ(sample->interrupt_registers.values[0], 39u);
  EXPECT_EQ(sample->phys_addr, 40u);
  EXPECT_EQ(sample->cgroup, 41u);
  EXPECT_EQ(sample->data_page_size, 42u);
  EXPECT_EQ(sample->code_page_size, 43u);
  EXPECT_EQ(text_of(sample->aux), "aux");
}

TEST(Sample, AnyCutIsNoSample) {
  const ByteWriter bytes = full_sample();
  for (std::size_t size = kRecordHeaderSize; size < bytes.size(); ++size) {
    RecordView record = sample_view(bytes);
    record.bytes = record.bytes.first(size);
    EXPECT_FALSE(parse_sample(record, full_attr())) << size;
  }
}

TEST(Sample, ACountBeyondTheRecordIsNoSample) {
  EventAttr attr;
  attr.sample_type = abi::kSampleCallchain;
  ByteWriter out;
  out.u32(abi::kRecordSample).u16(0).u16(24).u64(~std::uint64_t{0} / 8 + 2).u64(0);
  EXPECT_FALSE(parse_sample(sample_view(out), attr));
}

TEST(Sample, WithoutAPeriodTheEventsOwnHolds) {
  EventAttr attr;
  attr.sample_type = abi::kSampleIp;
  attr.sample_period = 4000;
  ByteWriter out;
  out.u32(abi::kRecordSample).u16(0).u16(16).u64(0x1234);
  const auto sample = parse_sample(sample_view(out), attr);
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->period, 4000u);
  EXPECT_EQ(sample->ip, 0x1234u);
}

TEST(Sample, TheWeightStructIsThreeNumbers) {
  EventAttr attr;
  attr.sample_type = abi::kSampleWeightStruct;
  ByteWriter out;
  out.u32(abi::kRecordSample).u16(0).u16(16).u32(7).u16(8).u16(9);
  const auto sample = parse_sample(sample_view(out), attr);
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->weight, 7u);
  EXPECT_EQ(sample->weight2, 8u);
  EXPECT_EQ(sample->weight3, 9u);
}

TEST(Sample, RegistersOfNoAbiAreAbsent) {
  EventAttr attr;
  attr.sample_type = abi::kSampleRegsUser | abi::kSampleStackUser;
  attr.sample_regs_user = 0xff;
  ByteWriter out;
  out.u32(abi::kRecordSample).u16(0).u16(24).u64(0).u64(0);
  const auto sample = parse_sample(sample_view(out), attr);
  ASSERT_TRUE(sample);
  EXPECT_TRUE(sample->user_registers.values.empty());
  EXPECT_TRUE(sample->user_stack.empty());
}

TEST(ReadValues, OfOneEventKeepTheIdApartFromTheTimes) {
  ByteWriter out;
  out.u64(100).u64(1).u64(2).u64(77).u64(3);
  Cursor in(out.view());
  const ReadValues values =
      parse_read_values(in, abi::kReadTimeEnabled | abi::kReadTimeRunning | abi::kReadId | abi::kReadLost);
  ASSERT_FALSE(in.failed());
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values.entry(0).value, 100u);
  EXPECT_EQ(values.entry(0).id, 77u);
  EXPECT_EQ(values.entry(0).lost, 3u);
  EXPECT_EQ(values.time_running, 2u);
}

TEST(ReadValues, OfOneEventWithoutTimes) {
  ByteWriter out;
  out.u64(100).u64(77);
  Cursor in(out.view());
  const ReadValues values = parse_read_values(in, abi::kReadId);
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values.entry(0).value, 100u);
  EXPECT_EQ(values.entry(0).id, 77u);
  EXPECT_EQ(in.left(), 0u);
}

TEST(SampleParser, NothingOfOneSampleIsLeftInTheNext) {
  SampleParser parser;
  const ByteWriter full = full_sample();
  const Sample* first = parser.parse(sample_view(full), full_attr());
  ASSERT_NE(first, nullptr);
  ASSERT_FALSE(first->user_stack.empty());

  // The same fields, all of them empty that can be.
  EventAttr some;
  some.sample_type = abi::kSampleCallchain | abi::kSampleRegsUser | abi::kSampleStackUser;
  some.sample_regs_user = 0b101;
  ByteWriter long_one, short_one;
  long_one.u32(abi::kRecordSample).u16(0).u16(0).u64(1).u64(9).u64(2).u64(3).u64(4).u64(8).u64(5).u64(8);
  short_one.u32(abi::kRecordSample).u16(0).u16(0).u64(0).u64(0).u64(0);
  const Sample* sample = parser.parse(sample_view(long_one), some);
  ASSERT_NE(sample, nullptr);
  EXPECT_EQ(sample->time, ~std::uint64_t{0}) << "not sampled by this event";
  EXPECT_EQ(sample->user_registers.values.size(), 2u);
  EXPECT_EQ(sample->user_stack.size(), 8u);
  sample = parser.parse(sample_view(short_one), some);
  ASSERT_NE(sample, nullptr);
  EXPECT_EQ(sample->callchain.size(), 0u);
  EXPECT_EQ(sample->user_registers.values.size(), 0u);
  EXPECT_EQ(sample->user_stack.size(), 0u);
}

TEST(SampleTime, IsFoundWithoutTakingTheRestApart) {
  const ByteWriter bytes = full_sample();
  EXPECT_EQ(sample_time(sample_view(bytes), full_attr()), 5u);
  EventAttr none = full_attr();
  none.sample_type = abi::kSampleIp;
  EXPECT_EQ(sample_time(sample_view(bytes), none), std::nullopt);
}

TEST(SampleId, StandsAtTheEndOfOtherRecords) {
  EventAttr attr;
  attr.flags = abi::kSampleIdAll;
  attr.sample_type = abi::kSampleTid | abi::kSampleTime | abi::kSampleId | abi::kSampleStreamId |
                     abi::kSampleCpu | abi::kSampleIdentifier;
  ASSERT_EQ(sample_id_size(attr), 48u);
  ByteWriter out;
  out.u32(abi::kRecordComm).u16(0).u16(72).u32(1).u32(2).padded_text("sh", 8);
  out.u32(3).u32(4).u64(5).u64(6).u64(7).u32(8).u32(0).u64(9);
  const RecordView record = sample_view(out, abi::kRecordComm);
  const SampleId id = parse_sample_id(record, attr);
  EXPECT_EQ(id.pid, 3u);
  EXPECT_EQ(id.tid, 4u);
  EXPECT_EQ(id.time, 5u);
  EXPECT_EQ(id.stream_id, 7u);
  EXPECT_EQ(id.cpu, 8u);
  EXPECT_EQ(id.id, 9u);
  EXPECT_EQ(record_time(record, attr), 5u);
}

}  // namespace
}  // namespace tacho::format
