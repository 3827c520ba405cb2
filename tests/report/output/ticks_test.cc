#include "report/output/ticks.h"

#include <gtest/gtest.h>

namespace tacho::report {
namespace {

using Numbers = std::vector<double>;

TEST(Ticks, AreRoundNumbers) {
  EXPECT_EQ(linear_ticks(0, 1e9, 8), (Numbers{0, 2e8, 4e8, 6e8, 8e8, 1e9}));
  EXPECT_EQ(linear_ticks(-7, 12, 4), (Numbers{-5, 0, 5, 10}));
  EXPECT_EQ(linear_ticks(3, 5, 10), (Numbers{3, 4, 5})) << "values are whole numbers";
}

TEST(Ticks, OfLogarithmsHavePowersFirst) {
  EXPECT_EQ(log_ticks(30, 1100, false), (Numbers{100, 1000, 50, 500, 200}));
  EXPECT_EQ(log_ticks(1000, 5000, true), (Numbers{1024, 4096, 2048}));
  EXPECT_EQ(log_ticks(0, 0, false), Numbers{});
}

}  // namespace
}  // namespace tacho::report
