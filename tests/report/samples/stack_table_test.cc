#include "report/samples/stack_table.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace tacho::report {
namespace {

namespace abi = format::abi;
using Words = std::vector<std::uint64_t>;

class StackTableTest : public testing::Test {
 protected:
  static format::Bytes bytes_of(const Words& words) { return std::as_bytes(std::span(words)); }
  const Stack& ask(const Words& words, std::uint64_t due = 0, std::uint32_t pid = 7) {
    format::Sample sample;
    sample.pid = pid;
    sample.callchain = format::U64Array(bytes_of(words), std::endian::native);
    return stacks_.stack_of(spaces_, sample, {}, 127, due);
  }
  std::vector<std::uint64_t> addresses(const Stack& stack) const {
    std::vector<std::uint64_t> all;
    for (const std::uint32_t number : stack.frames) all.push_back(places_.locations()[number].ip.value);
    return all;
  }
  symbolize::AddressSpaces spaces_;
  PlaceTable places_;
  StackTable stacks_{places_};
  const Words one_{abi::kContextUser, 0x1000, 0x2000}, two_{abi::kContextUser, 0x1000, 0x3000};
};

TEST_F(StackTableTest, EqualChainsOfOneProcessAreOneStack) {
  const std::uint32_t first = ask(one_).number;
  EXPECT_EQ(addresses(ask(one_)), (Words{0x1000, 0x2000}));
  EXPECT_EQ(ask(one_).number, first);
  EXPECT_NE(ask(two_).number, first);
  EXPECT_NE(ask(one_, 0, 8).number, first) << "another process";
}

// A mark is followed by where code was interrupted: in the kernel, in the process, and below a signal's
// handler.
TEST_F(StackTableTest, AllButTheFirstBehindAMarkAreReturnAddresses) {
  const Words chain{abi::kContextKernel, 1, 2, abi::kContextUser, 3, 4, abi::kContextUser, 4, 5};
  const auto callers = [&] {
    Words found;
    for (const std::uint32_t number : ask(chain).frames)
      if (places_.locations()[number].is_caller) found.push_back(places_.locations()[number].ip.value);
    return found;
  };
  EXPECT_EQ(callers(), Words{}) << "they are one chain for perf";
  stacks_.end_lookups();
  stacks_.tell_callers();
  EXPECT_EQ(addresses(ask(chain)), (Words{1, 2, 3, 4, 4, 5}));
  EXPECT_EQ(callers(), (Words{2, 4, 5}));
}

TEST_F(StackTableTest, AChainThatWasExpectedIsTheSameStack) {
  const std::uint32_t first = ask(one_).number;
  for (std::uint64_t due = 1; due <= 40; ++due) {
    const Words& words = due % 3 == 0 ? two_ : one_;
    stacks_.expect(7, bytes_of(words), due);
    EXPECT_EQ(addresses(ask(words, due)), Words(words.begin() + 1, words.end()));
  }
  EXPECT_EQ(ask(one_).number, first);
}

// What was expected may never be asked for, and its memory may hold another chain by then.
TEST_F(StackTableTest, WhatWasExpectedIsNotTakenForAnother) {
  stacks_.expect(7, bytes_of(one_), 5);
  EXPECT_EQ(addresses(ask(two_, 5)), (Words{0x1000, 0x3000})) << "other words are due";
  Words memory = one_;
  stacks_.expect(7, bytes_of(memory), 6);
  memory = two_;
  EXPECT_EQ(addresses(ask(memory, 6 + 8)), (Words{0x1000, 0x3000})) << "the same memory, later";
  EXPECT_EQ(addresses(ask(memory)), (Words{0x1000, 0x3000}));
}

// A pipe's head is read by a run of its own. Stacks of it stay, and later ones get other numbers.
TEST_F(StackTableTest, ChainsOfAnotherRunAreToldApart) {
  const Stack& head = ask(one_);
  ask(two_);
  stacks_.end_lookups();
  EXPECT_EQ(addresses(head), (Words{0x1000, 0x2000}));
  std::vector<std::uint32_t> numbers;
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < 3000; ++i) {
      const Words words{abi::kContextUser, 0x1000 + i, 0x2000};
      stacks_.expect(7, bytes_of(words), i + 1);
      const Stack& stack = ask(words, i + 1);
      ASSERT_EQ(addresses(stack), (Words{0x1000 + i, 0x2000}));
      if (round == 0) numbers.push_back(stack.number);
      ASSERT_EQ(stack.number, numbers[i]);
    }
  }
}

TEST_F(StackTableTest, ToldByFramesEqualChainsOfAllProcessesAreOneStack) {
  stacks_.tell_by_frames();
  const std::uint32_t first = ask(one_).number;
  EXPECT_EQ(ask(one_).number, first);
  EXPECT_EQ(ask(one_, 0, 8).number, first) << "another process";
  EXPECT_NE(ask(two_).number, first);
  stacks_.mappings_changed(7);
  EXPECT_EQ(ask(one_).number, first);
}

// More than are kept: those that were met long ago are found again.
TEST_F(StackTableTest, ToldByFramesAChainThatWasForgottenIsTheSameStack) {
  stacks_.tell_by_frames();
  constexpr std::uint64_t kChains = 100'000;
  std::vector<std::uint32_t> numbers;
  for (std::uint64_t i = 0; i < kChains; ++i)
    numbers.push_back(ask({abi::kContextUser, 0x1000 + i, 0x2000}).number);
  for (std::uint64_t i = 0; i < kChains; ++i) {
    const Stack& stack = ask({abi::kContextUser, 0x1000 + i, 0x2000});
    ASSERT_EQ(stack.number, numbers[i]);
    ASSERT_EQ(addresses(stack), (Words{0x1000 + i, 0x2000}));
  }
}

TEST_F(StackTableTest, PassingChainsThatComeAgainSoonAreTheSameStack) {
  stacks_.let_pass();
  const Stack& first = ask(one_);
  EXPECT_EQ(addresses(first), (Words{0x1000, 0x2000}));
  EXPECT_EQ(&ask(one_), &first);
  EXPECT_EQ(addresses(ask(two_)), (Words{0x1000, 0x3000}));
  EXPECT_NE(ask(two_).number, first.number);
  EXPECT_NE(ask(one_, 0, 8).number, first.number) << "another process";
  stacks_.expect(7, bytes_of(one_), 5);
  EXPECT_EQ(ask(one_, 5).number, first.number) << "as expected";
  stacks_.mappings_changed(7);
  EXPECT_NE(ask(one_).number, first.number) << "other mappings";
}

// As many as go through all of its memory several times: each is right when it is given, stays right for
// whoever holds its memory, and its memory goes with the last holder.
TEST_F(StackTableTest, PassingStacksLiveAsLongAsTheirMemoryIsHeld) {
  stacks_.let_pass();
  constexpr std::uint64_t kChains = 400'000, kHeld = 37;
  const auto chain_of = [](std::uint64_t i) {
    return Words{abi::kContextUser, 0x1000 + i % 5000, 0x2000 + i};
  };
  std::vector<std::pair<const Stack*, StackMemory>> held;
  StackMemory::weak_type let_go;
  for (std::uint64_t i = 0; i < kChains; ++i) {
    const Stack& stack = ask(chain_of(i));
    const Words expected{0x1000 + i % 5000, 0x2000 + i};
    ASSERT_EQ(addresses(stack), expected);
    ASSERT_NE(stacks_.memory(), nullptr);
    const auto* const begin = reinterpret_cast<const StackMemory::element_type*>(&stack);
    ASSERT_GE(begin, stacks_.memory()->get()) << "memory() is the stack's";
    if (i == 0) let_go = *stacks_.memory();
    if (i > 10'000 && i % kHeld == 0 && held.size() < 2000) held.emplace_back(&stack, *stacks_.memory());
  }
  EXPECT_TRUE(let_go.expired()) << "nobody held it";
  std::uint64_t i = 10'027;  // the first multiple of kHeld above 10,000
  for (const auto& [stack, memory] : held) {
    ASSERT_EQ(addresses(*stack), (Words{0x1000 + i % 5000, 0x2000 + i}));
    i += kHeld;
  }
  const Stack& again = ask(chain_of(0));
  EXPECT_EQ(addresses(again), (Words{0x1000, 0x2000})) << "forgotten and made anew";
  EXPECT_GT(again.number, kChains - 1);
}

// A chain that was met shortly before gives the memory of its stack, not of the stack that was made last.
TEST_F(StackTableTest, APassingStackThatIsKnownTellsItsOwnMemory) {
  stacks_.let_pass();
  const Stack& first = ask(one_);
  const StackMemory memory = *stacks_.memory();
  for (std::uint64_t i = 0; i < 5000; ++i) ask({abi::kContextUser, 0x1000 + i, 0x2000, 0x3000 + i});
  EXPECT_NE(*stacks_.memory(), memory);
  if (&ask(one_) != &first) GTEST_SKIP() << "another chain took its place";
  EXPECT_EQ(*stacks_.memory(), memory);
}

}  // namespace
}  // namespace tacho::report
