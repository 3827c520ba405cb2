// What is said of stacks at the end of a recording.

#include "record/stacks/stack_unwinding.h"

#include <gtest/gtest.h>

namespace tacho::record {

namespace {

TEST(StackText, SharesAreOfStacksThatThereWere) {
  StackCounts counts;
  EXPECT_EQ(stack_counts_text(counts), "");
  counts.ends[TACHO_END_WHOLE] = 90;
  counts.ends[TACHO_END_FRAME_ZERO] = 5;
  EXPECT_EQ(stack_counts_text(counts), "User stacks: 100.00 % of 95 are whole");
  counts.ends[TACHO_END_EXITING] = 40;
  counts.ends[TACHO_END_EXEC] = 50;
  EXPECT_EQ(stack_counts_text(counts),
            "User stacks: 100.00 % of 95 are whole; samples where there is none: 50 in execve, between two "
            "programs, 40 as "
            "their processes ended");
  counts.ends[TACHO_END_CUT] = 1;
  counts.ends[TACHO_END_COPY] = 4;
  const format::StringPairs facts = stack_counts_facts(counts);
  ASSERT_EQ(facts.size(), 6u);
  EXPECT_EQ(facts[0].second, "100");
  EXPECT_EQ(facts[1].second, "95 (95.00 %)");
  EXPECT_EQ(facts[2].first, "others end deeper than the part of the stack that was copied");
  EXPECT_EQ(facts[2].second, "4 (4.00 %)");
  EXPECT_EQ(facts[4].first, "samples where there is none, in execve, between two programs");
  EXPECT_EQ(facts[4].second, "50");
}

TEST(StackText, SamplesWithoutStacksAreInNoPercentage) {
  StackCounts counts;
  counts.ends[TACHO_END_EXITING] = 3;
  EXPECT_EQ(stack_counts_text(counts), "");
  EXPECT_TRUE(stack_counts_facts(counts).empty());
}

}  // namespace

}  // namespace tacho::record
