#include "report/samples/index_table.h"

#include <gtest/gtest.h>

#include <set>

namespace tacho::report {
namespace {

TEST(RowHash, RowsOfTwoCountersHaveHashesOfTheirOwn) {
  constexpr std::uint64_t kCounted = 512;
  const RowHash hash;
  std::set<std::uint64_t> hashes, tags;
  for (std::uint64_t one = 0; one < kCounted; ++one) {
    for (std::uint64_t other = 0; other < kCounted; ++other) {
      hashes.insert(hash(one, other));
      tags.insert(hash(one, other) >> 32);
    }
  }
  EXPECT_EQ(hashes.size(), kCounted * kCounted);
  EXPECT_GT(tags.size(), kCounted * kCounted * 99 / 100) << "the half that decides where a row is kept";
}

TEST(RowHash, AFewWordsThatDifferAlwaysInTheSameBitsDoNotMeet) {
  const RowHash hash;
  std::set<std::uint64_t> tags;
  constexpr std::uint64_t kRows = 4096;
  for (std::uint64_t i = 0; i < kRows; ++i) tags.insert(hash(i << 48, i << 48, i) >> 32);
  EXPECT_GT(tags.size(), kRows * 99 / 100);
}

TEST(RowHash, EachTableHasItsOwn) {
  EXPECT_NE(RowHash()(std::uint64_t{1}, std::uint64_t{2}), RowHash()(std::uint64_t{1}, std::uint64_t{2}))
      << "nobody can foresee which rows meet";
}

TEST(IndexTable, FindsWhatItWasGiven) {
  IndexTable table;
  std::vector<std::uint64_t> kept;
  const auto number_of = [&](std::uint64_t word) {
    return table.find_or_make(
        table.hash(word), [&](std::uint32_t number) { return kept[number] == word; },
        [&] {
          kept.push_back(word);
          return static_cast<std::uint32_t>(kept.size() - 1);
        });
  };
  for (std::uint64_t word = 0; word < 10000; ++word) EXPECT_EQ(number_of(word * 7), word);
  for (std::uint64_t word = 0; word < 10000; ++word) EXPECT_EQ(number_of(word * 7), word);
}

}  // namespace
}  // namespace tacho::report
