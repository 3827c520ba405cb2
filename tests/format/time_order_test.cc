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

}  // namespace
}  // namespace tacho::format
