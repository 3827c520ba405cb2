#include "format/container/time_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

namespace tacho::format {
namespace {

// Pushes records that differ in their file offset.
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

// Blocks of records of one size, as a recorder with large rings leaves them in one round.
class LongRound {
 public:
  static constexpr std::size_t kRecord = 8192, kPerBlock = 32;

  explicit LongRound(std::size_t most_held = TimeOrder::kMostHeld) : order_(most_held) {}
  // The block's records have these times.
  void push_block(const std::vector<std::uint64_t>& times, std::size_t packed = 10000) {
    auto block = std::make_shared<Block>();
    block->packed = packed;
    block->bytes.resize(times.size() * kRecord);
    for (std::size_t i = 0; i < times.size(); ++i) {
      std::byte* const at = block->bytes.data() + i * kRecord;
      std::fill_n(at, kRecord, std::byte{0x5a});
      const std::uint32_t type = 9;
      const std::uint16_t misc = 2, size = kRecord;
      std::memcpy(at, &type, sizeof type);
      std::memcpy(at + 4, &misc, sizeof misc);
      std::memcpy(at + 6, &size, sizeof size);
      const std::uint64_t words[] = {pushed_.size(), times[i]};
      std::memcpy(at + kRecord - sizeof words, words, sizeof words);
      RecordView record = whole_record({at, kRecord}, std::endian::native);
      // The offset of an inflated record is that of its COMPRESSED record.
      record.offset = packed == 0 ? 1000 * kRecord + i * kRecord : 77;
      order_.push(record, times[i], block);
      pushed_.push_back(times[i]);
      offsets_.push_back(record.offset);
    }
    blocks_.push_back(block);
  }
  // Of the blocks that were pushed, those that are in memory as they were.
  auto held() const {
    return std::ranges::count_if(blocks_, [](const auto& block) { return !block.expired(); });
  }
  std::size_t count() const { return pushed_.size(); }
  TimeOrder& order() { return order_; }
  // The times of all records, each of which must come once, with its bytes.
  std::vector<std::uint64_t> popped() {
    std::vector<std::uint64_t> times;
    while (const auto item = order_.pop()) {
      std::uint64_t words[2] = {};
      EXPECT_EQ(item->record.bytes.size(), kRecord);
      std::memcpy(words, item->record.bytes.data() + kRecord - sizeof words, sizeof words);
      const auto [number, said] = words;
      EXPECT_EQ(said, item->time);
      EXPECT_EQ(item->record.type, 9u);
      EXPECT_EQ(pushed_.at(number), item->time);
      const std::byte* const block = (*item->block)->bytes.data();
      EXPECT_TRUE(item->record.bytes.data() >= block &&
                  item->record.bytes.data() + kRecord <= block + (*item->block)->bytes.size());
      EXPECT_EQ(item->record.offset, offsets_.at(number));
      pushed_.at(number) = ~std::uint64_t{0};
      times.push_back(item->time);
    }
    return times;
  }

 private:
  TimeOrder order_;
  std::vector<std::uint64_t> pushed_, offsets_;
  std::vector<std::weak_ptr<Block>> blocks_;
};

// 256 MB of what came from 10 MB: one processor's ring after the other.
TEST(TimeOrder, BlocksOfALongRoundArePackedWhileTheyWait) {
  constexpr std::uint64_t kProcessors = 4, kBlocks = 250;
  LongRound round;
  for (std::uint64_t processor = 0; processor < kProcessors; ++processor) {
    for (std::uint64_t block = 0; block < kBlocks; ++block) {
      std::vector<std::uint64_t> times;
      for (std::uint64_t i = 0; i < LongRound::kPerBlock; ++i)
        times.push_back(1 + (block * LongRound::kPerBlock + i) * kProcessors + processor);
      round.push_block(times);
    }
  }
  EXPECT_FALSE(round.order().has_ready());
  EXPECT_LE(round.held(), 300) << "of 1000";
  round.order().flush();
  const auto times = round.popped();
  EXPECT_EQ(times.size(), round.count());
  EXPECT_TRUE(std::ranges::is_sorted(times));
  EXPECT_EQ(round.order().out_of_order(), 0u);
  EXPECT_FALSE(round.order().went_out_early());
  EXPECT_LE(round.held(), 1) << "the newest stays";
}

// Each block has records of the whole time: to put them in order, each would be inflated for each of them.
TEST(TimeOrder, RecordsOfBlocksThatAllTakeTurnsGoOutAsTheyCame) {
  constexpr std::uint64_t kBlocks = 1000;
  LongRound round;
  for (std::uint64_t block = 0; block < kBlocks; ++block) {
    std::vector<std::uint64_t> times;
    for (std::uint64_t i = 0; i < LongRound::kPerBlock; ++i) times.push_back(1 + i * kBlocks + block);
    round.push_block(times);
  }
  round.order().flush();
  auto times = round.popped();
  EXPECT_EQ(times.size(), round.count());
  EXPECT_TRUE(round.order().went_out_early());
  EXPECT_GT(round.order().out_of_order(), 0u);
  std::ranges::sort(times);
  EXPECT_EQ(std::ranges::adjacent_find(times), times.end());
}

// Whatever is packed, opened again, let out early and how: each record comes once, with its bytes, and in
// order unless it is said.
TEST(TimeOrder, RecordsSurviveEveryWayThatBlocksGo) {
  std::uint64_t state = 7;
  const auto random = [&state](std::uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  int in_order = 0, given_up = 0;
  for (int run = 0; run < 150; ++run) {
    LongRound round(LongRound::kRecord * (1 + random(40)));
    const std::uint64_t processors = 1 + random(6), rounds = 1 + random(3), spread = 1 + random(300);
    std::vector<std::uint64_t> clock(processors, 1), all;
    for (std::uint64_t i = 0; i < rounds; ++i) {
      for (std::uint64_t block = 0; block < 20; ++block) {
        std::vector<std::uint64_t> times(1 + random(8));
        std::uint64_t& now = clock[random(processors)];
        for (std::uint64_t& time : times) time = now += random(spread);
        round.push_block(times, random(8) == 0 ? 0 : 1 + random(2000));
        std::ranges::copy(round.popped(), std::back_inserter(all));
      }
      round.order().finished_round();
      std::ranges::copy(round.popped(), std::back_inserter(all));
    }
    round.order().flush();
    std::ranges::copy(round.popped(), std::back_inserter(all));
    EXPECT_EQ(all.size(), round.count());
    EXPECT_TRUE(std::ranges::is_sorted(all) || round.order().out_of_order() > 0) << "run " << run;
    (round.order().went_out_early() ? given_up : in_order) += 1;
  }
  EXPECT_GT(in_order, 10);
  EXPECT_GT(given_up, 10);
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

// One record of a clock gone wrong waits to the end; the blocks after its own need not.
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
