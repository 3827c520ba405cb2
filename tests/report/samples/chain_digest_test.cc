#include "report/samples/chain_digest.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <span>
#include <utility>

namespace tacho::report {
namespace {

using Words = std::array<std::uint64_t, 40>;

ChainDigest digest(const Words& words, std::size_t size, std::uint64_t seed) {
  return ChainHash(seed)(std::as_bytes(std::span(words).first(size)));
}

Words chain() {
  Words words;
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = 0xffffffff81000000 + 0x9e3779b9 * i;
  return words;
}

// A hash that takes words by turns into four lanes, and in each turn rotates and multiplies, loses a change
// of bit 34 in one word against one of bit 63 in the lane's next, whatever its seed.
TEST(ChainDigest, ChangesThatUndoEachOtherInALaneChangeBothHalves) {
  const Words one = chain();
  for (const std::size_t size : {8u, 12u, 40u}) {
    for (std::size_t at = 0; at + 4 < size; ++at) {
      Words other = one;
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
  const Words one = chain();
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  constexpr std::size_t kWords = 9, kBits = kWords * 64;
  std::size_t made = 0;
  for (std::size_t first = 0; first < kBits; ++first) {
    for (std::size_t second = first + 1; second < kBits; second += 7, ++made) {
      Words other = one;
      other[first / 64] ^= std::uint64_t{1} << first % 64;
      other[second / 64] ^= std::uint64_t{1} << second % 64;
      const ChainDigest found = digest(other, kWords, 7);
      seen.insert({found.low, found.high});
    }
  }
  EXPECT_EQ(seen.size(), made);
}

TEST(ChainDigest, TheSeedDecides) {
  const Words one = chain();
  EXPECT_EQ(digest(one, 40, 5), digest(one, 40, 5));
  EXPECT_NE(digest(one, 40, 5), digest(one, 40, 6));
  EXPECT_NE(digest(one, 2, 5), digest(one, 2, 6));
}

}  // namespace
}  // namespace tacho::report
