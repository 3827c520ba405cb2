#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <random>

#include "symbolize/address_space.h"

namespace tacho::symbolize {
namespace {

constexpr std::uint64_t kSpace = 300;

// Which mapping stands at each address, without any cleverness.
using Plain = std::array<const Mapping*, kSpace>;

class MappingListTest : public testing::Test {
 protected:
  void put(MappingList& list, Plain& plain, std::uint64_t start, std::uint64_t end) {
    for (const Mapping* const old : list.take(start, end)) {
      keep_part(list, plain, *old, old->start, std::min(old->end, start));
      keep_part(list, plain, *old, std::max(old->start, end), old->end);
    }
    add(list, plain, start, end);
  }
  void add(MappingList& list, Plain& plain, std::uint64_t start, std::uint64_t end) {
    mappings.push_back({.start = start, .end = end});
    list.add(&mappings.back(), static_cast<std::uint32_t>(start * 2654435761u));
    for (std::uint64_t at = start; at < end; ++at) plain[at] = &mappings.back();
  }
  void keep_part(MappingList& list, Plain& plain, const Mapping& old, std::uint64_t start,
                 std::uint64_t end) {
    if (start < end && start >= old.start) add(list, plain, start, end);
  }
  static void expect_same(const MappingList& list, const Plain& plain) {
    for (std::uint64_t at = 0; at < kSpace; ++at) {
      const AddressRange range = list.range_at(at);
      ASSERT_EQ(range.mapping, plain[at]) << at;
      ASSERT_LE(range.first, at);
      ASSERT_GE(range.last, at);
      for (std::uint64_t other = range.first; other <= std::min(range.last, kSpace - 1); ++other)
        ASSERT_EQ(plain[other], plain[at]) << other << " as well as " << at;
    }
  }
  std::deque<Mapping> mappings;
};

TEST_F(MappingListTest, FindsWhatASimpleTableFindsAfterAnyWrites) {
  std::mt19937 random(4);
  MappingList list;
  Plain plain{};
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t start = random() % (kSpace - 1);
    const std::uint64_t end = start + 1 + random() % std::min<std::uint64_t>(kSpace - start - 1, 40);
    put(list, plain, start, end);
    expect_same(list, plain);
  }
  const std::vector<const Mapping*> all = list.all();
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_LE(all[i - 1]->end, all[i]->start);
}

TEST_F(MappingListTest, AWriteToACopyDoesNotShowInTheOther) {
  std::mt19937 random(5);
  std::vector<std::pair<MappingList, Plain>> copies(1);
  for (int i = 0; i < 600; ++i) {
    auto [list, plain] = copies[random() % copies.size()];
    const std::uint64_t start = random() % (kSpace - 20);
    put(list, plain, start, start + 1 + random() % 19);
    copies.emplace_back(std::move(list), plain);
  }
  for (const auto& [list, plain] : copies) expect_same(list, plain);
}

}  // namespace
}  // namespace tacho::symbolize
