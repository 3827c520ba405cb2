#include "record/stacks/callchain_merger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "format/base/byte_writer.h"
#include "format/records/perf_abi.h"
#include "format/records/record_view.h"
#include "format/records/sample.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;
using ChainWords = std::vector<std::uint64_t>;

constexpr std::uint64_t kEvent = 5, kWalks = 6, kStranger = 7;
constexpr std::uint16_t kKernel = 1, kUser = 2;  // cpumode

format::EventAttr sample_attr() {
  format::EventAttr attr;
  attr.sample_type = abi::kSampleIdentifier | abi::kSampleIp | abi::kSampleTid | abi::kSampleTime |
                     abi::kSamplePeriod | abi::kSampleCallchain | abi::kSampleRaw;
  return attr;
}

class CallchainMergerTest : public testing::Test {
 protected:
  CallchainMergerTest() {
    merger_.add_event(kEvent, attr_);
    format::EventAttr walks;
    walks.sample_type = abi::kSampleIdentifier | abi::kSampleTid | abi::kSampleTime | abi::kSampleRaw;
    merger_.add_walks(kWalks, walks, kEvent);
  }

  void record(std::uint32_t type, std::uint16_t misc, format::Bytes body) {
    in_.u32(type)
        .u16(misc)
        .u16(static_cast<std::uint16_t>(format::kRecordHeaderSize + body.size()))
        .bytes(body);
  }
  void sample(std::uint32_t tid, std::uint16_t mode, std::uint64_t ip, const ChainWords& chain,
              std::uint64_t id = kEvent) {
    format::ByteWriter body;
    body.u64(id).u64(ip).u32(1).u32(tid).u64(1000).u64(3).u64(chain.size());
    for (const std::uint64_t word : chain) body.u64(word);
    body.u32(12).u32(1).u32(2).u32(3);
    record(abi::kRecordSample, mode, body.view());
  }
  void walk(std::uint32_t tid, const ChainWords& frames, std::uint16_t end = TACHO_END_WHOLE) {
    format::ByteWriter body;
    body.u64(kWalks)
        .u32(1)
        .u32(tid)
        .u64(1000)
        .u32(static_cast<std::uint32_t>(12 + 8 * frames.size()))
        .u32(tid)
        .u16(end);
    const bool has_copy = (end & TACHO_STACK_HAS_COPY) != 0;  // the last word is its number
    body.u16(static_cast<std::uint16_t>(frames.size() - (has_copy ? 1 : 0)));
    for (const std::uint64_t word : frames) body.u64(word);
    body.u32(0);
    record(abi::kRecordSample, kKernel, body.view());
  }
  void lost(std::uint64_t count) {
    format::ByteWriter body;
    body.u64(kEvent).u64(count);
    record(abi::kRecordLost, 0, body.view());
  }

  // The chains of the samples that come out; other records by what they say.
  std::vector<ChainWords> spliced(std::uint64_t lost_walks = 0) {
    std::vector<std::byte> records(8, std::byte{0xee});  // stands before, and stays
    const format::Bytes in = in_.view();
    records.insert(records.end(), in.begin(), in.end());
    EXPECT_TRUE(merger_.merge(records, 8, waiting_, [&](std::uint64_t) { return lost_walks; }));
    EXPECT_EQ(records[7], std::byte{0xee});
    in_.clear();
    std::vector<ChainWords> chains;
    format::Bytes rest = format::Bytes(records).subspan(8);
    while (!rest.empty()) {
      format::Cursor head(rest);
      head.u32();
      head.u16();
      const std::uint16_t size = head.u16();
      const auto view = format::whole_record(rest.first(size), std::endian::native);
      rest = rest.subspan(size);
      if (view.type == abi::kRecordLost) {
        format::Cursor body = view.body();
        body.u64();
        chains.push_back({0xdead, body.u64()});
        continue;
      }
      format::SampleParser parser;
      const format::Sample* const sample = parser.parse(view, attr_);
      EXPECT_NE(sample, nullptr);
      if (sample == nullptr) continue;
      EXPECT_EQ(sample->period, 3u) << "what stands before and after the chain is as it was";
      EXPECT_EQ(sample->raw.size(), 12u);
      ChainWords chain;
      for (std::size_t i = 0; i < sample->callchain.size(); ++i) chain.push_back(sample->callchain[i]);
      chains.push_back(chain);
    }
    return chains;
  }

  format::EventAttr attr_ = sample_attr();
  CallchainMerger merger_;
  CallchainMerger::Waiting waiting_;
  format::ByteWriter in_;
};

constexpr std::uint64_t kK = abi::kContextKernel, kU = abi::kContextUser;

TEST_F(CallchainMergerTest, ASampleGetsTheStackBeforeIt) {
  walk(9, {0x11, 0x12, 0x13});
  sample(9, kKernel, 0xf1, {kK, 0xf1, 0xf2});
  walk(9, {0x21});
  sample(9, kUser, 0x21, {});
  EXPECT_EQ(spliced(), (std::vector<ChainWords>{{kK, 0xf1, 0xf2, kU, 0x11, 0x12, 0x13}, {kU, 0x21}}));
  EXPECT_EQ(merger_.counts().ends[TACHO_END_WHOLE], 2u);
  EXPECT_EQ(merger_.counts().frames, 4u);
}

TEST_F(CallchainMergerTest, AnInterruptsSampleStandsInside) {
  walk(9, {0x11});
  walk(9, {0x22});
  sample(9, kKernel, 0xf2, {kK, 0xf2});
  sample(9, kKernel, 0xf1, {kK, 0xf1});
  EXPECT_EQ(spliced(), (std::vector<ChainWords>{{kK, 0xf2, kU, 0x22}, {kK, 0xf1, kU, 0x11}}));
}

TEST_F(CallchainMergerTest, AStackWaitsForASampleThatComesLater) {
  walk(9, {0x11});
  EXPECT_TRUE(spliced().empty());
  sample(8, kKernel, 0xf8, {kK, 0xf8});
  sample(9, kKernel, 0xf1, {kK, 0xf1});
  EXPECT_EQ(spliced(), (std::vector<ChainWords>{{kK, 0xf8}, {kK, 0xf1, kU, 0x11}}))
      << "and for its own thread's";
}

TEST_F(CallchainMergerTest, WithoutAStackAProgramsSampleHasItsAddress) {
  sample(9, kUser, 0x77, {});
  sample(9, kKernel, 0xf1, {kK, 0xf1});
  EXPECT_EQ(spliced(), (std::vector<ChainWords>{{kU, 0x77}, {kK, 0xf1}}));
  EXPECT_EQ(merger_.counts().without, 1u);
}

TEST_F(CallchainMergerTest, AStackOfAnotherPlaceIsNotTaken) {
  walk(9, {0x11, 0x12});
  sample(9, kUser, 0x77, {});
  EXPECT_EQ(spliced(), (std::vector<ChainWords>{{kU, 0x77}}));
  EXPECT_EQ(merger_.counts().without, 1u);
}

TEST_F(CallchainMergerTest, AfterALossNothingOlderIsTaken) {
  walk(9, {0x11});
  lost(5);
  sample(9, kKernel, 0xf1, {kK, 0xf1});
  EXPECT_EQ(spliced(2), (std::vector<ChainWords>{{0xdead, 3}, {kK, 0xf1}})) << "two of the five were stacks";
  lost(2);
  EXPECT_TRUE(spliced(2).empty()) << "only stacks were lost";
  EXPECT_EQ(merger_.counts().unused, 1u);
}

// perf refuses a capture with a LOST record that lacks its trailer, or of an event that it does not describe.
TEST_F(CallchainMergerTest, WhatWasLostBeforeAWalkIsSaidOfTheSamplesEvent) {
  format::ByteWriter body;
  body.u64(kWalks).u64(5).u32(1).u32(9).u64(1000).u64(kWalks);
  record(abi::kRecordLost, 0, body.view());
  std::vector<std::byte> records(in_.view().begin(), in_.view().end());
  EXPECT_TRUE(merger_.merge(records, 0, waiting_, [](std::uint64_t) { return std::uint64_t{2}; }));
  format::ByteWriter wanted;
  wanted.u32(abi::kRecordLost).u16(0).u16(48);
  wanted.u64(kEvent).u64(3).u32(1).u32(9).u64(1000).u64(kEvent);
  EXPECT_TRUE(std::ranges::equal(records, wanted.view()));
}

TEST_F(CallchainMergerTest, AStackThatCanBeFinishedHoldsItsSampleBack) {
  walk(9, {0x11, 0x12, 77}, TACHO_END_NO_TABLE | TACHO_STACK_HAS_COPY);
  sample(9, kUser, 0x11, {});
  sample(9, kKernel, 0xf2, {kK, 0xf2});
  std::vector<std::byte> records(in_.view().begin(), in_.view().end());
  std::vector<CallchainMerger::Deferred> deferred;
  const auto none_lost = [](std::uint64_t) { return std::uint64_t{0}; };
  ASSERT_TRUE(merger_.merge(records, 0, waiting_, none_lost, &deferred));
  ASSERT_EQ(deferred.size(), 1u);
  EXPECT_EQ(deferred[0].walk.frames, (ChainWords{0x11, 0x12})) << "the word after them is the copy's number";
  EXPECT_EQ(deferred[0].walk.copy, 77u);
  EXPECT_EQ(deferred[0].process, 1u);
  EXPECT_EQ(deferred[0].time, 1000u);
  EXPECT_EQ(merger_.counts().ends[TACHO_END_NO_TABLE], 0u) << "it did not end yet";
  const std::size_t others = records.size();

  deferred[0].walk.frames.push_back(0x13);
  deferred[0].walk.end = TACHO_END_WHOLE;
  merger_.write_finished(deferred[0], records);
  EXPECT_EQ(merger_.counts().ends[TACHO_END_WHOLE], 1u);
  EXPECT_EQ(merger_.counts().finished, 1u);
  in_.clear();
  in_.bytes(format::Bytes(records).subspan(others));
  const auto again = in_.view();
  format::SampleParser parser;
  const format::Sample* const sample = parser.parse(format::whole_record(again, std::endian::native), attr_);
  ASSERT_NE(sample, nullptr);
  ASSERT_EQ(sample->callchain.size(), 4u);
  EXPECT_EQ(sample->callchain[3], 0x13u);
  EXPECT_EQ(sample->raw.size(), 12u) << "what stands after is as it was";
}

TEST_F(CallchainMergerTest, WithoutAnUnwinderDeferredSamplesAreWrittenAsTheyAre) {
  walk(9, {0x11, 0x12, 77}, TACHO_END_NO_TABLE | TACHO_STACK_HAS_COPY);
  sample(9, kUser, 0x11, {});
  EXPECT_EQ(spliced(), (std::vector<ChainWords>{{kU, 0x11, 0x12}}));
  EXPECT_EQ(merger_.counts().ends[TACHO_END_NO_TABLE], 1u);
}

TEST_F(CallchainMergerTest, OtherEventsAndRecordsStay) {
  walk(9, {0x11});
  sample(9, kKernel, 0xf1, {kK, 0xf1}, kStranger);
  sample(9, kKernel, 0xf2, {kK, 0xf2});
  EXPECT_EQ(spliced(), (std::vector<ChainWords>{{kK, 0xf1}, {kK, 0xf2, kU, 0x11}}));
}

TEST_F(CallchainMergerTest, ARecordDoesNotOutgrowItsSize) {
  walk(9, ChainWords(2000, 0x11));
  sample(9, kUser, 0x11, ChainWords(7000, 0x22));
  const auto chains = spliced();
  ASSERT_EQ(chains.size(), 1u);
  EXPECT_LT(chains[0].size() * 8, 65536u);
  EXPECT_GT(chains[0].size(), 8100u);
}

TEST_F(CallchainMergerTest, DamageIsLeftToOthers) {
  walk(9, {0x11});
  std::vector<std::byte> records(in_.view().begin(), in_.view().end());
  records.resize(records.size() - 4);
  const auto before = records;
  EXPECT_FALSE(merger_.merge(records, 0, waiting_, [](std::uint64_t) { return 0U; }));
  EXPECT_EQ(records, before);
}

TEST(CallchainOffset, CountsWhatStandsBefore) {
  format::EventAttr attr = sample_attr();
  const std::vector<std::byte> body(200);
  EXPECT_EQ(callchain_offset(body, attr), 40u);
  attr.sample_type |= abi::kSampleRead;
  attr.read_format = abi::kReadId | abi::kReadLost | abi::kReadTimeEnabled;
  EXPECT_EQ(callchain_offset(body, attr), 40u + 32);
  attr.read_format |= abi::kReadGroup;
  format::ByteWriter group;
  group.zeros(40).u64(2).zeros(150);
  EXPECT_EQ(callchain_offset(group.view(), attr), 40u + 8 + 8 + 2 * 24);
  EXPECT_EQ(callchain_offset(format::Bytes(body).first(30), attr), std::nullopt);
  attr.sample_type &= ~std::uint64_t{abi::kSampleCallchain};
  EXPECT_EQ(callchain_offset(body, attr), std::nullopt);
}

TEST_F(CallchainMergerTest, WalksAloneCanBeTakenOut) {
  walk(7, {1, 2, 3});
  sample(7, kUser, 1, {});
  lost(4);
  walk(8, {});
  std::vector<std::byte> records(8, std::byte{0xee});
  records.insert(records.end(), in_.view().begin(), in_.view().end());
  merger_.drop_walks(records, 8);

  format::ByteWriter kept;
  std::swap(in_, kept);
  sample(7, kUser, 1, {});
  lost(4);
  EXPECT_TRUE(std::ranges::equal(format::Bytes(records).subspan(8), in_.view()));
  EXPECT_EQ(records.front(), std::byte{0xee});
}

}  // namespace
}  // namespace tacho::record
