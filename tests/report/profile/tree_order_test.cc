#include "report/profile/tree_order.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace tacho::report {
namespace {

struct Row {
  std::uint32_t weight = 0, thread = 0, depth = 0, number = 0;
  bool operator==(const Row&) const = default;
};

// As rows of a report are compared: the depth decides between rows of one thread only, so that a before b
// before c does not say that a is before c.
bool contradicts_itself(const Row& a, const Row& b) {
  if (a.weight != b.weight) return a.weight > b.weight;
  if (a.thread == b.thread && a.depth != b.depth) return a.depth < b.depth;
  return a.number % 16 < b.number % 16;
}

TEST(TreeOrder, IsThatOfEveryRedBlackTreeWhateverTheComparisonSays) {
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same rows each time
  for (std::uint32_t count : {0U, 1U, 2U, 3U, 10U, 100U, 3000U}) {
    for (int round = 0; round < 20; ++round) {
      std::vector<Row> rows(count);
      for (std::uint32_t i = 0; i < count; ++i) {
        rows[i] = {static_cast<std::uint32_t>(random() % 4), static_cast<std::uint32_t>(random() % 3),
                   static_cast<std::uint32_t>(random() % 5), static_cast<std::uint32_t>(random() % 1000)};
      }
      std::multiset<Row, bool (*)(const Row&, const Row&)> tree(contradicts_itself);
      for (const Row& row : rows) tree.insert(row);
      put_in_tree_order(std::span(rows), contradicts_itself);
      ASSERT_TRUE(std::ranges::equal(rows, tree)) << count << " rows";
    }
  }
}

TEST(TreeOrder, EqualItemsStandAsTheyCame) {
  std::vector<Row> rows;
  for (std::uint32_t i = 0; i < 100; ++i) rows.push_back({.weight = i % 2, .number = 16 * i});
  put_in_tree_order(std::span(rows), contradicts_itself);
  for (std::uint32_t i = 0; i < 50; ++i) {
    EXPECT_EQ(rows[i].number, 16 * (2 * i + 1));
    EXPECT_EQ(rows[50 + i].number, 16 * 2 * i);
  }
}

}  // namespace
}  // namespace tacho::report
