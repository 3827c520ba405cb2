#include "record/stacks/number_runs.h"

#include <gtest/gtest.h>

namespace tacho::record {
namespace {

using std::chrono::milliseconds;

const NumberRuns::Clock::time_point kStart{};
const auto kLater = kStart + NumberRuns::kRest;

TEST(NumberRuns, RunsAreGivenOutOnce) {
  NumberRuns runs(10);
  EXPECT_EQ(runs.take(4, kStart), 0u);
  EXPECT_EQ(runs.take(6, kStart), 4u);
  EXPECT_EQ(runs.take(1, kStart), std::nullopt);
  EXPECT_EQ(runs.taken(), 10u);
}

TEST(NumberRuns, WhatIsGivenBackRestsFirst) {
  NumberRuns runs(10);
  runs.take(10, kStart);
  runs.give_back(2, 3, kStart);
  EXPECT_EQ(runs.take(1, kLater - milliseconds(1)), std::nullopt);
  EXPECT_EQ(runs.take(3, kLater), 2u);
  EXPECT_EQ(runs.taken(), 10u);
}

TEST(NumberRuns, WhatRestsIsForeseen) {
  NumberRuns runs(10);
  runs.take(10, kStart);
  EXPECT_FALSE(runs.will_have(1));
  runs.give_back(2, 3, kStart);
  runs.give_back(6, 2, kStart);
  EXPECT_TRUE(runs.will_have(3));
  EXPECT_FALSE(runs.will_have(4)) << "no two of them touch";
  runs.give_back(5, 1, kStart);
  EXPECT_TRUE(runs.will_have(6));
  EXPECT_EQ(runs.take(1, kStart), std::nullopt) << "it rests all the same";
}

// Tables that no stack led through for long lie anywhere among the others.
TEST(NumberRuns, RoomForThoseThatComeNextMayLieApart) {
  constexpr std::uint32_t kTables = 160, kEach = 10, kApart = 37;
  NumberRuns runs(kTables * kEach);
  for (std::uint32_t i = 0; i < kTables; ++i) runs.take(kEach, kStart);
  std::uint32_t evicted = 0;
  for (; !runs.will_have(kEach, 100); ++evicted)
    runs.give_back(evicted * kApart % kTables * kEach, kEach, kStart);
  EXPECT_EQ(evicted, 10u);
  EXPECT_FALSE(runs.will_have(100)) << "no two of them touch";
  EXPECT_TRUE(runs.take(kEach, kLater));
  EXPECT_TRUE(runs.will_have(kEach, 90)) << "what rested is counted once";
  EXPECT_FALSE(runs.will_have(kEach, 91));
}

TEST(NumberRuns, NeighboursGrowTogetherAgain) {
  NumberRuns runs(9);
  for (int i = 0; i < 3; ++i) runs.take(3, kStart);
  runs.give_back(0, 3, kStart);
  runs.give_back(6, 3, kStart);
  EXPECT_EQ(runs.take(4, kLater), std::nullopt);
  runs.give_back(3, 3, kStart);
  EXPECT_EQ(runs.take(9, kLater), 0u);
}

TEST(NumberRuns, MoreNumbersFollowTheLast) {
  NumberRuns runs(2);
  EXPECT_EQ(runs.take(1, kStart), 0u);
  runs.grow(3);
  EXPECT_EQ(runs.take(4, kStart), 1u);
  EXPECT_EQ(runs.size(), 5u);
}

}  // namespace
}  // namespace tacho::record
