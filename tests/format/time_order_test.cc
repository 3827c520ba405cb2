#include "format/time_order.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tacho::format
