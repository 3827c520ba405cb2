#include "report/samples/stack_table.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <span>
#include <utility>
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
    for (const LocationId number : stack.frames) all.push_back(location_table_.locations()[number].ip.value);
    return all;
  }
  symbolize::AddressSpaces spaces_;
  LocationTable location_table_;
  StackTable stacks_{location_table_};
  const Words one_{abi::kContextUser, 0x1000, 0x2000}, two_{abi::kContextUser, 0x1000, 0x3000};
};

TEST_F(StackTableTest, EqualChainsOfOneProcessAreOneStack) {
  change_mappings(8);
  const StackId first = ask(one_).id;
  EXPECT_EQ(addresses(ask(one_)), (Words{0x1000, 0x2000}));
  EXPECT_EQ(ask(one_).id, first);
  EXPECT_NE(ask(two_).id, first);
  EXPECT_NE(ask(one_, 8).id, first) << "another process";
  EXPECT_EQ(ask(one_, 9).id, first) << "neither has mappings";
}

// A mark is followed by where code was interrupted: in the kernel, in the process, and below a signal's
// handler.
TEST_F(StackTableTest, AllButTheFirstAfterAMarkAreReturnAddresses) {
  const Words chain{abi::kContextKernel, 1, 2, abi::kContextUser, 3, 4, abi::kContextUser, 4, 5};
  const auto callers = [&] {
    Words found;
    for (const LocationId number : ask(chain).frames)
      if (location_table_.locations()[number].is_caller)
        found.push_back(location_table_.locations()[number].ip.value);
    return found;
  };
  EXPECT_EQ(callers(), Words{}) << "they are one chain for perf";
  stacks_.end_lookups();
  symbolize::SymbolOptions by_call;
  by_call.callers = symbolize::Callers::ByCall;
  stacks_.reader().use({}, by_call);
  EXPECT_EQ(addresses(ask(chain)), (Words{1, 2, 3, 4, 4, 5}));
  EXPECT_EQ(callers(), (Words{2, 4, 5}));
}

// A pipe's head is read by a run of its own. Stacks of it stay, and those that come later are told apart.
TEST_F(StackTableTest, ChainsOfAnotherRunAreToldApart) {
  const Stack& head = ask(one_);
  ask(two_);
  stacks_.end_lookups();
  EXPECT_EQ(addresses(head), (Words{0x1000, 0x2000}));
  std::vector<StackId> ids;
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < 3000; ++i) {
      const Words words{abi::kContextUser, 0x1000 + i, 0x2000};
      const Stack& stack = ask(words);
      ASSERT_EQ(addresses(stack), (Words{0x1000 + i, 0x2000}));
      if (round == 0) ids.push_back(stack.id);
      ASSERT_EQ(stack.id, ids[i]);
    }
  }
}

TEST_F(StackTableTest, ToldByFramesEqualChainsOfAllProcessesAreOneStack) {
  stacks_.merge_by_frames();
  const StackId first = ask(one_).id;
  EXPECT_EQ(ask(one_).id, first);
  EXPECT_EQ(ask(one_, 8).id, first) << "another process";
  EXPECT_NE(ask(two_).id, first);
  change_mappings(7);
  EXPECT_EQ(ask(one_).id, first);
}

// More than are kept: those that were met long ago are found again.
TEST_F(StackTableTest, ToldByFramesAChainThatWasForgottenIsTheSameStack) {
  stacks_.merge_by_frames();
  constexpr std::uint64_t kChains = 100'000;
  std::vector<StackId> ids;
  for (std::uint64_t i = 0; i < kChains; ++i) ids.push_back(ask({abi::kContextUser, 0x1000 + i, 0x2000}).id);
  for (std::uint64_t i = 0; i < kChains; ++i) {
    const Stack& stack = ask({abi::kContextUser, 0x1000 + i, 0x2000});
    ASSERT_EQ(stack.id, ids[i]);
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
  EXPECT_NE(unwound.id, recorded.id);
  EXPECT_EQ(addresses(unwound), addresses(recorded));
  EXPECT_TRUE(location_table_.locations()[unwound.frames.back()].is_unwound);
}

using FortyWords = std::array<std::uint64_t, 40>;

ChainDigest digest(const FortyWords& words, std::size_t size, std::uint64_t seed) {
  return ChainHash(seed)(std::as_bytes(std::span(words).first(size)));
}

FortyWords forty_words() {
  FortyWords words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = 0xffffffff81000000 + 0x9e3779b9 * i;
  return words;
}

// A hash that takes words by turns into four lanes, and in each turn rotates and multiplies, loses a change
// of bit 34 in one word against one of bit 63 in the lane's next, whatever its seed.
TEST(ChainDigest, ChangesThatUndoEachOtherInALaneChangeBothHalves) {
  const FortyWords one = forty_words();
  for (const std::size_t size : {8u, 12u, 40u}) {
    for (std::size_t at = 0; at + 4 < size; ++at) {
      FortyWords other = one;
      other[at] ^= std::uint64_t{1} << 34;
      other[at + 4] ^= std::uint64_t{1} << 63;
      for (const std::uint64_t seed : {0ull, 1ull, 0x123456789abcdefull}) {
        const ChainDigest first = digest(one, size, seed), second = digest(other, size, seed);
        EXPECT_NE(first.low, second.low) << size << " words, at " << at << ", seed " << seed;
        EXPECT_NE(first.high, second.high) << size << " words, at " << at << ", seed " << seed;
      }
    }
  }
}

TEST(ChainDigest, TwoBitsOfAChainChangeItWhereverTheyStand) {
  const FortyWords one = forty_words();
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  constexpr std::size_t kWords = 9, kBits = kWords * 64;
  std::size_t made = 0;
  for (std::size_t first = 0; first < kBits; ++first) {
    for (std::size_t second = first + 1; second < kBits; second += 7, ++made) {
      FortyWords other = one;
      other[first / 64] ^= std::uint64_t{1} << first % 64;
      other[second / 64] ^= std::uint64_t{1} << second % 64;
      const ChainDigest found = digest(other, kWords, 7);
      seen.insert({found.low, found.high});
    }
  }
  EXPECT_EQ(seen.size(), made);
}

TEST(ChainDigest, TheSeedDecides) {
  const FortyWords one = forty_words();
  EXPECT_EQ(digest(one, 40, 5), digest(one, 40, 5));
  EXPECT_NE(digest(one, 40, 5), digest(one, 40, 6));
  EXPECT_NE(digest(one, 2, 5), digest(one, 2, 6));
}

}  // namespace
}  // namespace tacho::report
