#include <gtest/gtest.h>

#include "symbolize/names/symbol_table.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint32_t kNobody = 99;

TEST(RangeIndex, AnEmptyOneHoldsNothing) {
  EXPECT_FALSE(RangeIndex().find(0));
  EXPECT_FALSE(RangeIndex({{5, 5, 0, 1}, {9, 3, 0, 2}}).find(5));
}

TEST(RangeIndex, TheLowestRankHasAnAddressAndGivesItBackAtItsEnd) {
  const RangeIndex index({{0, 100, 100, 0}, {20, 60, 40, 1}, {30, 40, 10, 2}, {200, 201, 1, 3}});
  const auto owner = [&](std::uint64_t address) { return index.find(address).value_or(kNobody); };
  EXPECT_EQ(owner(0), 0u);
  EXPECT_EQ(owner(19), 0u);
  EXPECT_EQ(owner(20), 1u);
  EXPECT_EQ(owner(30), 2u);
  EXPECT_EQ(owner(39), 2u);
  EXPECT_EQ(owner(40), 1u);
  EXPECT_EQ(owner(60), 0u);
  EXPECT_EQ(owner(100), kNobody);
  EXPECT_EQ(owner(200), 3u);
  EXPECT_EQ(owner(201), kNobody);
  EXPECT_EQ(owner(~std::uint64_t{0}), kNobody);
}

TEST(RangeIndex, OfEqualRanksTheHighestOwnerHasIt) {
  const RangeIndex index({{0, 10, 10, 4}, {0, 10, 10, 7}, {0, 10, 10, 5}});
  EXPECT_EQ(index.find(3), 7u);
}

TEST(RangeIndex, AnEndedRangeThatNeverCameUpIsForgotten) {
  const RangeIndex index({{0, 50, 1, 0}, {10, 20, 2, 1}, {0, 60, 3, 2}});
  EXPECT_EQ(index.find(15), 0u);
  EXPECT_EQ(index.find(55), 2u) << "1 ended at 20 below 0";
}

}  // namespace
}  // namespace tacho::symbolize
