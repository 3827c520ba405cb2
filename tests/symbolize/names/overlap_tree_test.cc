#include "symbolize/names/overlap_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace tacho::symbolize {
namespace {

TEST(OverlapTree, FindsNothingWhenEmpty) { EXPECT_EQ(OverlapTree(0).find(1), std::nullopt); }

TEST(OverlapTree, EndIsPastTheLastAndAnEmptyRangeCoversItsStart) {
  OverlapTree tree(2);
  tree.insert(0, 10, 20);
  tree.insert(1, 30, 30);
  EXPECT_EQ(tree.find(9), std::nullopt);
  EXPECT_EQ(tree.find(10), 0u);
  EXPECT_EQ(tree.find(19), 0u);
  EXPECT_EQ(tree.find(20), std::nullopt);
  EXPECT_EQ(tree.find(30), 1u);
  EXPECT_EQ(tree.find(31), std::nullopt);
}

// The shape decides: the range nearer to the root is met first.
TEST(OverlapTree, TheRangeMetFirstOnTheWayDownWins) {
  OverlapTree outer_first(2);
  outer_first.insert(0, 0, 100);
  outer_first.insert(1, 40, 60);
  EXPECT_EQ(outer_first.find(50), 0u);
  OverlapTree inner_first(2);
  inner_first.insert(1, 40, 60);
  inner_first.insert(0, 0, 100);
  EXPECT_EQ(inner_first.find(50), 1u);
  EXPECT_EQ(inner_first.find(70), std::nullopt) << "right of the inner one there is nothing";
}

TEST(OverlapTree, AmongEqualStartsTheEarlierStaysOnTop) {
  OverlapTree tree(3);
  for (std::uint32_t i = 0; i < 3; ++i) tree.insert(i, 5, 9);
  EXPECT_EQ(tree.find(6), 1u) << "three in a row are turned about the second";
}

// Ranges that do not overlap are found whatever the shape is: each insertion and removal must keep the order.
TEST(OverlapTree, KeepsEveryRangeThroughInsertionsAndRemovals) {
  constexpr std::uint32_t kCount = 2000;
  std::mt19937 random(7);
  OverlapTree tree(kCount);
  std::vector<std::uint32_t> order(kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  for (const std::uint32_t i : order) tree.insert(i, i * 10, i * 10 + 5);
  std::set<std::uint32_t> erased;
  for (std::uint32_t i = 0; i < kCount; i += 3) erased.insert(order[i]);
  for (const std::uint32_t i : erased) tree.erase(i);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const auto found = tree.find(i * 10 + 4);
    EXPECT_EQ(found, erased.contains(i) ? std::nullopt : std::optional(i));
    EXPECT_EQ(tree.find(i * 10 + 7), std::nullopt);
  }
  for (std::uint32_t i = 0; i < kCount; ++i) {
    if (!erased.contains(i)) tree.erase(i);
  }
  EXPECT_EQ(tree.find(14), std::nullopt) << "all are gone";
}

}  // namespace
}  // namespace tacho::symbolize
