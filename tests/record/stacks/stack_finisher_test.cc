// Stacks that wait to be finished, and those that nobody waits for any longer.
#include "record/stacks/stack_finisher.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

namespace tacho::record {
namespace {

using Stacks = StackFinisher::Stacks;

Stacks stacks_of_pass(std::uint64_t pass, std::size_t count) {
  Stacks stacks(count);
  for (StackFinisher::Stack& stack : stacks) {
    stack.pass = pass;
    stack.sample.walk.frames = {0x1000, 0x2000};
    stack.sample.walk.end = TACHO_END_NO_TABLE;
  }
  return stacks;
}

// Its thread does not run: nothing is ever finished.
TEST(StackFinisher, MoreThanMayWaitAreDoneAsTheyAre) {
  const auto finisher = std::make_shared<StackFinisher>(100);
  finisher->give(stacks_of_pass(1, StackFinisher::kMostWaiting - 1));
  EXPECT_TRUE(finisher->take_done().empty());
  finisher->give(stacks_of_pass(2, 3));
  const Stacks done = finisher->take_done();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done.front().pass, 2u);
  EXPECT_EQ(done.front().sample.walk.frames.size(), 2u);
}

TEST(StackFinisher, WhatIsGivenUpIsDoneAsItIs) {
  const auto finisher = std::make_shared<StackFinisher>(100);
  finisher->give(stacks_of_pass(1, 5));
  finisher->give_up();
  const Stacks done = finisher->take_done();
  ASSERT_EQ(done.size(), 5u);
  EXPECT_EQ(done.front().sample.walk.end, TACHO_END_NO_TABLE);
  finisher->give_up();
  EXPECT_TRUE(finisher->take_done().empty()) << "each once";
}

// From a thread of its own, which gives up rights for good.
TEST(StackFinisher, EachIsDoneOnceHoweverOftenItIsGivenUp) {
  const auto finisher = std::make_shared<StackFinisher>(100);
  ASSERT_TRUE(finisher->start());
  constexpr std::size_t kRounds = 200, kStacks = 20;
  std::size_t done = 0;
  for (std::size_t round = 0; round < kRounds; ++round) {
    finisher->give(stacks_of_pass(round, kStacks));
    if (round % 3 == 0) finisher->give_up();
    done += finisher->take_done().size();
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (done < kRounds * kStacks && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    done += finisher->take_done().size();
  }
  EXPECT_EQ(done, kRounds * kStacks);
  finisher->end();
  EXPECT_TRUE(finisher->take_done().empty());
}

}  // namespace
}  // namespace tacho::record
