#include "record/stacks/deferred_unwinder.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace tacho::record {

namespace {

using Stacks = DeferredUnwinder::Stacks;

Stacks stacks_of_pass(std::uint64_t pass, std::size_t count) {
  Stacks stacks(count);
  for (DeferredUnwinder::Stack& stack : stacks) {
    stack.pass = pass;
    stack.sample.walk.frames = {0x1000, 0x2000};
    stack.sample.walk.end = TACHO_END_NO_TABLE;
  }
  return stacks;
}

// Its thread does not run: nothing is ever finished.
TEST(DeferredUnwinder, MoreThanMayWaitAreDoneAsTheyAre) {
  const auto finisher = std::make_shared<DeferredUnwinder>(100, nullptr);
  finisher->give_stacks(stacks_of_pass(1, DeferredUnwinder::kMostWaiting - 1));
  EXPECT_TRUE(finisher->take_finished().empty());
  finisher->give_stacks(stacks_of_pass(2, 3));
  const Stacks done = finisher->take_finished();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done.front().pass, 2u);
  EXPECT_EQ(done.front().sample.walk.frames.size(), 2u);
}

TEST(DeferredUnwinder, WhatIsGivenUpIsDoneAsItIs) {
  const auto finisher = std::make_shared<DeferredUnwinder>(100, nullptr);
  finisher->give_stacks(stacks_of_pass(1, 5));
  finisher->give_up_stacks();
  const Stacks done = finisher->take_finished();
  ASSERT_EQ(done.size(), 5u);
  EXPECT_EQ(done.front().sample.walk.end, TACHO_END_NO_TABLE);
  finisher->give_up_stacks();
  EXPECT_TRUE(finisher->take_finished().empty()) << "each once";
}

// From a thread of its own, which gives up rights for good.
TEST(DeferredUnwinder, EachIsDoneOnceHoweverOftenItIsGivenUp) {
  const auto finisher = std::make_shared<DeferredUnwinder>(100, nullptr);
  ASSERT_TRUE(finisher->start());
  constexpr std::size_t kRounds = 200, kStacks = 20;
  std::size_t done = 0;
  for (std::size_t round = 0; round < kRounds; ++round) {
    finisher->give_stacks(stacks_of_pass(round, kStacks));
    if (round % 3 == 0) finisher->give_up_stacks();
    done += finisher->take_finished().size();
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (done < kRounds * kStacks && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    done += finisher->take_finished().size();
  }
  EXPECT_EQ(done, kRounds * kStacks);
  finisher->end_thread();
  EXPECT_TRUE(finisher->take_finished().empty());
}

// A file of a file system whose server hangs: whoever reads it waits, and for how long nobody knows.
class HangingFile {
 public:
  ~HangingFile() { answer(); }
  DeferredUnwinder::ImageOf opener() {
    return [state = state_](const MappedFile&) -> Result<unwind::ElfImage> {
      std::unique_lock lock(state->mutex);
      ++state->asked;
      state->changed.notify_all();
      state->changed.wait(lock, [&] { return state->answers; });
      return Error{"gone", kNotOpened};
    };
  }
  void wait_until_asked() {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [this] { return state_->asked != 0; });
  }
  void answer() {
    const std::lock_guard lock(state_->mutex);
    state_->answers = true;
    state_->changed.notify_all();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    int asked = 0;
    bool answers = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();  // the thread may outlive us
};

TEST(DeferredUnwinder, AFileThatNeverAnswersKeepsNoStackAndNoRecorder) {
  HangingFile hanging;
  const auto finisher = std::make_shared<DeferredUnwinder>(100, nullptr, hanging.opener());
  ASSERT_TRUE(finisher->start());
  MappedFile file;
  file.name = "/nowhere/hanging";
  file.inode = 5;
  const std::uint32_t number = finisher->number_of(file);
  Stacks stacks = stacks_of_pass(1, 3);
  for (DeferredUnwinder::Stack& stack : stacks) {
    stack.copy.frames = 2;
    stack.maps.ranges = std::make_shared<CodeMaps::Ranges>(CodeMaps::Ranges{{0x1000, 0x3000, 0, 0, number}});
  }
  finisher->give_stacks(std::move(stacks));
  hanging.wait_until_asked();
  EXPECT_TRUE(finisher->take_finished().empty());
  finisher->give_up_stacks();
  const Stacks done = finisher->take_finished();
  ASSERT_EQ(done.size(), 3u) << "the one under way, too";
  EXPECT_EQ(done.front().sample.walk.end, TACHO_END_NO_TABLE);
  EXPECT_EQ(done.front().sample.walk.frames.size(), 2u);

  finisher->give_stacks(stacks_of_pass(2, 1));
  const auto begin = std::chrono::steady_clock::now();
  finisher->end_thread();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30)) << "it waits for ever";
  finisher->give_up_stacks();
  EXPECT_EQ(finisher->take_finished().size(), 1u);
  const std::weak_ptr<DeferredUnwinder> left = finisher;
  EXPECT_GT(left.use_count(), 1) << "the thread that was left behind holds what it uses";
  hanging.answer();
}

}  // namespace

}  // namespace tacho::record
