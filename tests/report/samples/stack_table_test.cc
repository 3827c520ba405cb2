#include "report/samples/stack_table.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

namespace tacho::report {
namespace {

namespace abi = format::abi;
using Words = std::vector<std::uint64_t>;

class StackTableTest : public testing::Test {
 protected:
  static format::Bytes bytes_of(const Words& words) { return std::as_bytes(std::span(words)); }
  const Stack& ask(const Words& words, std::uint32_t pid = 7) {
    return stacks_.stack_of({.words = format::U64Array(bytes_of(words), std::endian::native), .unwound = {}},
                            spaces_.version(pid));
  }
  void change_mappings(std::uint32_t pid) {
    format::MmapRecord record;
    record.pid = record.tid = pid;
    record.start = 0x100000 * ++changes_;
    record.length = 0x1000;
    record.filename = "/bin/x";
    spaces_.apply(record, abi::kCpumodeUser);
  }
  std::uint64_t changes_ = 0;
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
  change_mappings(8);
  const std::uint32_t first = ask(one_).number;
  EXPECT_EQ(addresses(ask(one_)), (Words{0x1000, 0x2000}));
  EXPECT_EQ(ask(one_).number, first);
  EXPECT_NE(ask(two_).number, first);
  EXPECT_NE(ask(one_, 8).number, first) << "another process";
  EXPECT_EQ(ask(one_, 9).number, first) << "neither has mappings";
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
  stacks_.reader().tell_callers();
  EXPECT_EQ(addresses(ask(chain)), (Words{1, 2, 3, 4, 4, 5}));
  EXPECT_EQ(callers(), (Words{2, 4, 5}));
}

// A pipe's head is read by a run of its own. Stacks of it stay, and those that come later are told apart.
TEST_F(StackTableTest, ChainsOfAnotherRunAreToldApart) {
  const Stack& head = ask(one_);
  ask(two_);
  stacks_.end_lookups();
  EXPECT_EQ(addresses(head), (Words{0x1000, 0x2000}));
  std::vector<std::uint32_t> numbers;
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < 3000; ++i) {
      const Words words{abi::kContextUser, 0x1000 + i, 0x2000};
      const Stack& stack = ask(words);
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
  EXPECT_EQ(ask(one_, 8).number, first) << "another process";
  EXPECT_NE(ask(two_).number, first);
  change_mappings(7);
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

TEST_F(StackTableTest, AChainAndWhatWasUnwoundOfItAreToldApartByWhereItBegins) {
  const Words more{0x3000};
  const auto ask_both = [&](const Words& words, std::span<const std::uint64_t> unwound) -> const Stack& {
    return stacks_.stack_of(
        {.words = format::U64Array(bytes_of(words), std::endian::native), .unwound = unwound},
        spaces_.version(7));
  };
  const Words all{abi::kContextUser, 0x1000, 0x2000, 0x3000};
  const Stack& recorded = ask(all);
  const Stack& unwound = ask_both(one_, more);
  EXPECT_NE(unwound.number, recorded.number);
  EXPECT_EQ(addresses(unwound), addresses(recorded));
  EXPECT_TRUE(places_.locations()[unwound.frames.back()].is_unwound);
}

}  // namespace
}  // namespace tacho::report
