#include "report/samples/tables.h"

#include <gtest/gtest.h>

#include <ctime>
#include <set>

namespace tacho::report {
namespace {

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

TEST(AddressTable, KeepsANumberForEachAddressOfEachSpace) {
  AddressTable<std::uint32_t> table;
  std::uint32_t made = 0;
  const auto number = [&](std::uint32_t space, std::uint64_t ip) {
    return table.find_or_make(space, ip, [&] { return made++; });
  };
  EXPECT_EQ(number(1, 0x1000), 0u);
  EXPECT_EQ(number(2, 0x1000), 1u);
  EXPECT_EQ(number(1, 0x1000), 0u);
  for (std::uint64_t ip = 0; ip < 4096; ++ip) number(3, ip << 52);
  EXPECT_EQ(made, 4098u);
  EXPECT_EQ(number(3, std::uint64_t{17} << 52), 19u);
}

// Process i runs at address 16 i: joined by XOR, space and address were the same key for all of them.
TEST(AddressTable, SpacesAndAddressesThatCountTogetherCostNoMoreThanOthers) {
  constexpr std::uint32_t kCount = 60000;
  const double before = processor_seconds();
  AddressTable<std::uint32_t> table;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    table.find_or_make(i << 4, std::uint64_t{i} << 4, [&] { return i; });
    table.find_or_make(i, ~std::uint64_t{i}, [&] { return i; });
  }
  EXPECT_LT(processor_seconds() - before, 1.0);
}

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

template <class Array, class Index>
concept TakesIndex = requires(Array array, Index index) {
  array[index];
};

static_assert(TakesIndex<IdVector<StackId, int>, StackId>);
static_assert(!TakesIndex<IdVector<StackId, int>, FunctionId>);
static_assert(!TakesIndex<StableArray<int, StackId>, std::uint32_t>);
static_assert(!TakesIndex<IdMap<StackId, int>, std::uint32_t>);

TEST(IdVector, AndStableArrayFindItemsByTheIdsTheyGave) {
  IdVector<StackId, int> vector;
  StableArray<int, StackId> array;
  for (const int item : {5, 6, 7}) EXPECT_EQ(vector.push_back(item), array.push_back(item));
  std::vector<int> items;
  for (const StackId id : array.ids()) {
    ASSERT_TRUE(vector.has(id));
    EXPECT_EQ(vector[id], array[id]);
    items.push_back(array[id]);
  }
  EXPECT_EQ(items, (std::vector{5, 6, 7}));
  EXPECT_FALSE(vector.has(array.next_id()));
  EXPECT_FALSE(vector.has(kNo<StackId>));
}

TEST(IndexTable, FindsWhatItWasGiven) {
  IndexTable<> table;
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
