#include "format/time_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tacho::format {
namespace {

// Pushes records told apart by their file offset.
void push(TimeOrder& order, std::uint64_t time, std::uint64_t offset, const BlockRef& block) {
  RecordView record;
  record.offset = offset;
  order.push(record, time, block);
}

std::vector<std::uint64_t> popped(TimeOrder& order) {
  std::vector<std::uint64_t> offsets;
  while (const auto item = order.pop()) offsets.push_back(item->record.offset);
  return offsets;
}

using Offsets = std::vector<std::uint64_t>;

TEST(TimeOrder, ARoundLetsOutWhatWasSeenBeforeTheRoundBefore) {
  const auto block = std::make_shared<Block>();
  TimeOrder order;
  push(order, 30, 1, block);
  push(order, 10, 2, block);
  order.finished_round();
  EXPECT_EQ(popped(order), Offsets{}) << "another processor's ring may still hold older ones";
  push(order, 20, 3, block);
  push(order, 40, 4, block);
  order.finished_round();
  EXPECT_EQ(popped(order), (Offsets{2, 3, 1}));
  order.flush();
  EXPECT_EQ(popped(order), (Offsets{4}));
}

TEST(TimeOrder, EqualTimesKeepTheOrderOfTheFile) {
  const auto block = std::make_shared<Block>();
  TimeOrder order;
  for (std::uint64_t i = 0; i < 5; ++i) push(order, 7, i, block);
  order.flush();
  EXPECT_EQ(popped(order), (Offsets{0, 1, 2, 3, 4}));
}

TEST(TimeOrder, OneOlderThanWhatWentOutIsCountedAndGivenLate) {
  const auto block = std::make_shared<Block>();
  TimeOrder order;
  push(order, 100, 1, block);
  order.finished_round();
  order.finished_round();
  EXPECT_EQ(popped(order), (Offsets{1}));
  push(order, 50, 2, block);
  EXPECT_EQ(order.out_of_order(), 1u);
  order.flush();
  EXPECT_EQ(popped(order), (Offsets{2}));
}

TEST(TimeOrder, HoldsABlockOnlyWhileARecordOfItWaits) {
  auto first = std::make_shared<Block>();
  auto second = std::make_shared<Block>();
  std::weak_ptr<Block> watch = first;
  TimeOrder order;
  push(order, 1, 1, first);
  push(order, 2, 2, second);
  first.reset();
  EXPECT_FALSE(watch.expired());
  order.flush();
  ASSERT_TRUE(order.pop());
  EXPECT_FALSE(watch.expired()) << "its bytes are valid until the next pop";
  ASSERT_TRUE(order.pop());
  EXPECT_TRUE(watch.expired());
}

TEST(TimeOrder, ManyRunsAreMergedAndEqualTimesKeepTheirOrder) {
  const auto block = std::make_shared<Block>();
  TimeOrder order;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> expected;  // time, offset
  std::uint64_t state = 1, offset = 0, time = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 50; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      time = state >> 60 == 0 ? 1000 + (state >> 40) % 500 : time + (state >> 62);  // now and then a new run
      expected.emplace_back(time, offset);
      push(order, time, offset++, block);
    }
  }
  std::ranges::stable_sort(expected, {}, &std::pair<std::uint64_t, std::uint64_t>::first);
  Offsets sorted;
  for (const auto& [when, where] : expected) sorted.push_back(where);
  order.flush();
  EXPECT_EQ(popped(order), sorted);
}

// Frames that inflate to far more than they take in the capture, and no round that ends.
TEST(TimeOrder, WhatWaitsIsBoundedByWhatItCameFrom) {
  constexpr std::uint64_t kRecords = 2000000, kPerBlock = 1000;
  TimeOrder order;
  std::shared_ptr<Block> block;
  std::uint64_t most = 0, waiting = 0, last = 0, given = 0;
  for (std::uint64_t i = 0; i < kRecords; ++i) {
    if (i % kPerBlock == 0) {
      block = std::make_shared<Block>();
      block->packed = 100;
    }
    push(order, i ^ 1, i, block);
    most = std::max(most, ++waiting);
    if (!order.has_ready()) continue;
    for (; const auto item = order.pop(); --waiting, ++given) {
      EXPECT_GE(item->time, last);
      last = item->time;
    }
  }
  EXPECT_TRUE(order.went_out_early());
  EXPECT_LE(most, 500000u);
  order.flush();
  EXPECT_EQ(given + popped(order).size(), kRecords);
  EXPECT_LE(order.out_of_order(), 10u);
}

TEST(TimeOrder, PlainRecordsWaitAsLongAsTheirRoundDoes) {
  const auto block = std::make_shared<Block>();
  block->bytes.resize(64);
  TimeOrder order;
  RecordView record;
  record.bytes = block->bytes;
  for (std::uint64_t i = 1; i <= 600000; ++i) order.push(record, 1000000 - i, block);
  EXPECT_FALSE(order.has_ready());
  EXPECT_FALSE(order.went_out_early());
}

// One record of a clock gone wrong waits to the end; the blocks behind its own need not.
TEST(TimeOrder, ABlockIsLetGoWhenItsRecordsAreOut) {
  TimeOrder order;
  const auto first = std::make_shared<Block>();
  push(order, ~std::uint64_t{0} - 1, 0, first);
  std::weak_ptr<const Block> second;
  {
    const auto block = std::make_shared<Block>();
    second = block;
    push(order, 10, 1, block);
  }
  push(order, 20, 2, std::make_shared<Block>());
  order.finished_round();
  push(order, 30, 3, std::make_shared<Block>());
  order.finished_round();
  order.flush();
  ASSERT_EQ(order.pop()->record.offset, 1u);
  ASSERT_EQ(order.pop()->record.offset, 2u);
  EXPECT_TRUE(second.expired());
}

}  // namespace
}  // namespace tacho::format
