#include "record/objects/channel_rings.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <new>
#include <utility>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/records/perf_abi.h"
#include "format/records/record_view.h"
#include "format/records/sample.h"
#include "record/objects/attributed_losses.h"
#include "record/objects/ring_event.h"
#include "record/objects/ring_layout.h"
#include "record/output/record_counts.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

format::EventAttr attr() {
  format::EventAttr made;
  made.sample_type = abi::kSampleIdentifier | abi::kSampleIp | abi::kSampleTid | abi::kSampleTime |
                     abi::kSampleCpu | abi::kSamplePeriod | abi::kSampleRaw;
  return made;
}

// As tacho_reserve() of tacho/emit.h leaves it.
std::vector<std::byte> with_head(std::uint32_t magic, std::size_t payload_bytes) {
  format::ByteWriter out;
  out.u32(magic);
  out.u32(3);     // CPU
  out.u64(1000);  // time
  out.u32(41);
  out.u32(42);
  for (std::size_t i = 0; i < payload_bytes; ++i) out.u8(0x5a);
  return std::move(out).take_bytes();
}

TEST(ChannelRings, TheHeaderHasTimeAndCpu) {
  const auto bytes = with_head(0x31434154, 5);
  const auto event = parse_ring_event(bytes);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->cpu, 3u);
  EXPECT_EQ(event->time, 1000u);
  EXPECT_EQ(event->process, 41u);
  EXPECT_EQ(event->thread, 42u);
  EXPECT_EQ(event->payload.size(), 5u);
  EXPECT_TRUE(parse_ring_event(with_head(0x31434154, 0)));
}

TEST(ChannelRings, TheSampleHasTheCgroupOfTheHeader) {
  std::vector<std::byte> bytes = with_head(0x32434154, 16);  // 8 bytes of them are the cgroup
  const auto event = parse_ring_event(bytes);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->cgroup, 0x5a5a5a5a5a5a5a5au);
  EXPECT_EQ(event->payload.size(), 8u);
  format::EventAttr with_cgroup = attr();
  with_cgroup.sample_type |= abi::kSampleCgroup;
  std::vector<std::byte> records;
  ASSERT_TRUE(append_sample(records, *event, 9, with_cgroup));
  const auto sample = format::parse_sample(format::whole_record(records, std::endian::native), with_cgroup);
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->cgroup, 0x5a5a5a5a5a5a5a5au);
  EXPECT_FALSE(parse_ring_event(with_head(0x32434154, 7))) << "cut short";
  EXPECT_EQ(parse_ring_event(with_head(0x31434154, 16))->cgroup, 0u) << "of an older program";
}

TEST(ChannelRings, WithoutASoundHeadThereIsNoEvent) {
  EXPECT_FALSE(parse_ring_event(with_head(1, 5)));
  const auto bytes = with_head(0x31434154, 0);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(parse_ring_event(format::Bytes(bytes).first(size))) << size;
}

format::PayloadField field(const char* name, std::uint32_t offset, std::uint32_t count, const char* role) {
  format::PayloadField made;
  made.name = name;
  made.bit_offset = offset * 8;
  made.bit_size = 64;
  made.count = count;
  made.is_array = count != 1;
  made.role = role;
  return made;
}

TEST(ChannelRings, AStackAndAWeightOfThePayloadAreTheSamplesOwn) {
  format::PayloadSchema schema;
  schema.size = 8 + 2 * 8 + 3 * 8;
  schema.fields = {field("wait_ns", 0, 1, "weight"), field("kernel", 8, 2, "stack"),
                   field("user", 24, 3, "stack")};
  const RingLayout layout(schema);
  EXPECT_TRUE(layout.has_stack());
  const auto rest = RingLayout::schema_of_rest(schema);
  EXPECT_EQ(rest.size, 8u);
  ASSERT_EQ(rest.fields.size(), 1u);

  format::ByteWriter out;
  out.u64(123456);
  out.u64(0xffffffff81000010);
  out.u64(0);
  for (const std::uint64_t address : {0x401000, 0x402000, 0}) out.u64(address);
  const RingEvent event{.time = 1, .cpu = 0, .payload = out.view()};
  const std::vector<std::uint64_t> chain{abi::kContextKernel, 0xffffffff81000010, abi::kContextUser, 0x401000,
                                         0x402000};
  EXPECT_EQ(layout.chain_of(event.payload), chain);
  EXPECT_EQ(layout.period_of(event.payload), 123456u);
  for (std::size_t size = 0; size < event.payload.size(); ++size) {  // cut short
    (void)layout.chain_of(event.payload.first(size));
    (void)layout.rest_of(event.payload.first(size));
  }
  EXPECT_EQ(layout.period_of(event.payload.first(7)), 1u);

  auto with_chain = attr();
  with_chain.sample_type |= abi::kSampleCallchain;
  std::vector<std::byte> records;
  ASSERT_TRUE(append_sample(records, event, 77, with_chain, layout));
  format::Cursor in(records);
  in.skip(format::kRecordHeaderSize);
  in.u64();
  EXPECT_EQ(in.u64(), 0xffffffff81000010u) << "the place of the sample";
  in.skip(8 + 8 + 8);
  EXPECT_EQ(in.u64(), 123456u) << "the period";
  ASSERT_EQ(in.u64(), chain.size());
  for (const std::uint64_t address : chain) EXPECT_EQ(in.u64(), address);
  EXPECT_EQ(in.u32(), 12u) << "what is left of the payload, in whole words with its size";
  EXPECT_EQ(in.u64(), 123456u);
}

TEST(ChannelRings, AStackInTheMiddleStaysInThePayload) {
  format::PayloadSchema schema;
  schema.size = 24;
  schema.fields = {field("stack", 0, 2, "stack"), field("last", 16, 1, "")};
  EXPECT_EQ(RingLayout::schema_of_rest(schema), schema);
  const std::vector<std::byte> payload(24);
  EXPECT_EQ(RingLayout(schema).rest_of(payload).size(), 24u);
  EXPECT_FALSE(RingLayout(format::PayloadSchema{}).has_stack());
}

TEST(ChannelRings, ASampleIsLaidOutAsTheKernelDoes) {
  for (std::size_t size = 0; size < 20; ++size) {
    const auto bytes = with_head(0x31434154, size);
    std::vector<std::byte> records(16);
    ASSERT_TRUE(append_sample(records, *parse_ring_event(bytes), 77, attr()));
    const format::Bytes record = format::Bytes(records).subspan(16);
    EXPECT_EQ(record.size() % 8, 0u);
    RecordCounts counts;
    EXPECT_TRUE(count_records(record, counts));
    EXPECT_EQ(counts.samples, 1u);
    EXPECT_EQ(counts.first_time, 1000u);
    format::Cursor in(record);
    in.skip(format::kRecordHeaderSize);
    EXPECT_EQ(in.u64(), 77u);
    EXPECT_EQ(in.u64(), 0u);
    EXPECT_EQ(in.u32(), 41u);
    EXPECT_EQ(in.u32(), 42u);
    EXPECT_EQ(in.u64(), 1000u);
    EXPECT_EQ(in.u32(), 3u);
    in.u32();
    EXPECT_EQ(in.u64(), 1u);
    const std::uint32_t raw = in.u32();
    EXPECT_EQ((raw + 4) % 8, 0u);
    EXPECT_GE(raw, size);
    EXPECT_LT(raw, size + 8);
    EXPECT_EQ(in.left(), raw);
  }
}

TEST(ChannelRings, WhatNoRecordCanHoldIsRefused) {
  std::vector<std::byte> records;
  const auto large = with_head(0x31434154, 65536);
  EXPECT_FALSE(append_sample(records, *parse_ring_event(large), 1, attr()));
  EXPECT_TRUE(records.empty());
  const auto fits = with_head(0x31434154, 65400);
  EXPECT_TRUE(append_sample(records, *parse_ring_event(fits), 1, attr()));
}

// A buffer that has room for the fixed part of a sample and not for its payload; the limit ends with the
// child.
bool leaves_nothing_without_memory() {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const auto bytes = with_head(0x31434154, 60000);
  std::vector<std::byte> records;
  records.reserve(kBytes);
  records.resize(records.capacity() - 1024);
  const std::size_t before = records.size();
  const rlimit limit{0, 0};  // what is mapped stays; nothing large can be added
  if (setrlimit(RLIMIT_AS, &limit) != 0) return false;
  try {
    append_sample(records, *parse_ring_event(bytes), 77, attr());
  } catch (const std::bad_alloc&) {
    return records.size() == before;
  }
  return false;
}

TEST(ChannelRings, WithoutMemoryNothingOfASampleStays) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "its allocator ends the program instead";
#endif
  EXPECT_EXIT(_exit(leaves_nothing_without_memory() ? 0 : 1), testing::ExitedWithCode(0), "");
}

}  // namespace

namespace {

constexpr std::uint64_t kId = 100, kCgroup = 7, kOther = 8;

TEST(AttributedLosses, WhatProgramsNotedHasItsCgroupAndTime) {
  Losses counted{.event = 2, .id = kId, .lost = 10};
  const auto named = take_attributed(counted, {{0, kCgroup, 6, 50, 90}, {0, kOther, 3, 60, 70}});
  ASSERT_EQ(named.size(), 2u);
  EXPECT_EQ(named[0].event, 2u);
  EXPECT_EQ(named[0].id, kId);
  EXPECT_EQ(named[0].lost, 6u);
  EXPECT_EQ(named[0].cgroup, kCgroup);
  EXPECT_EQ(named[0].first, 50u);
  EXPECT_EQ(named[0].last, 90u);
  EXPECT_EQ(named[1].cgroup, kOther);
  EXPECT_EQ(counted.lost, 1u) << "written by somebody who does not note losses";
}

TEST(AttributedLosses, NoMoreIsAttributedThanTheKernelCounted) {
  Losses counted{.event = 0, .id = kId, .lost = 4};
  const auto named = take_attributed(counted, {{0, kCgroup, 3, 1, 2}, {0, kOther, 3, 1, 2}, {0, 9, 5, 1, 2}});
  ASSERT_EQ(named.size(), 2u);
  EXPECT_EQ(named[0].lost + named[1].lost, 4u);
  EXPECT_EQ(counted.lost, 0u);
}

}  // namespace

}  // namespace tacho::record
