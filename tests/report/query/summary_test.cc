#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "report/query/expressions.h"

namespace tacho::report {
namespace {

std::int64_t whole(const ExpressionValue& value) {
  EXPECT_EQ(value.kind, ExpressionValue::Kind::Whole);
  return static_cast<std::int64_t>(value.whole);
}

TEST(Summary, OfNothingIsNothing) {
  Summary summary;
  summary.add_value({});
  summary.add_value(ExpressionValue::of_text("12"));
  summary.add_value(ExpressionValue::of_real(std::nan("")));
  EXPECT_EQ(summary.count(), 0u);
  EXPECT_TRUE(summary.sum().is_nothing());
  EXPECT_TRUE(summary.mean().is_nothing());
  EXPECT_TRUE(summary.largest().is_nothing());
  EXPECT_TRUE(summary.percentile(50).is_nothing());
}

TEST(Summary, AValueThatWasThereManyTimesIsThatManyValues) {
  Summary many, one_by_one;
  many.add_value(ExpressionValue::of(5), 1000);
  many.add_value(ExpressionValue::of(7), 0);
  for (int i = 0; i < 1000; ++i) one_by_one.add_value(ExpressionValue::of(5));
  EXPECT_EQ(many.count(), one_by_one.count());
  EXPECT_EQ(whole(many.sum()), 5000);
  EXPECT_EQ(whole(many.largest()), 5);
  EXPECT_EQ(whole(many.percentile(99)), 5);
}

TEST(Summary, OfSlotsAndTheirSum) {
  Summary summary;
  summary.add_total(ExpressionValue::of(900), 3);
  EXPECT_EQ(whole(summary.sum()), 900);
  EXPECT_TRUE(summary.largest().is_nothing()) << "there are no values";
  EXPECT_TRUE(summary.percentile(50).is_nothing());
  summary.spread(ExpressionValue::of(128), ExpressionValue::of(255), 2);
  summary.spread(ExpressionValue::of(512), ExpressionValue::of(1023), 1);
  EXPECT_EQ(whole(summary.least()), 128);
  EXPECT_EQ(whole(summary.largest()), 1023);
  EXPECT_EQ(whole(summary.percentile(50)), 255);
  EXPECT_EQ(summary.count(), 3u);
}

TEST(Summary, SmallWholeNumbersAreExact) {
  Summary summary;
  for (int value = -100; value <= 200; ++value) summary.add_value(ExpressionValue::of(value));
  EXPECT_EQ(summary.count(), 301u);
  EXPECT_EQ(whole(summary.sum()), 15050);
  EXPECT_EQ(summary.mean().real, 50);
  EXPECT_EQ(whole(summary.least()), -100);
  EXPECT_EQ(whole(summary.largest()), 200);
  EXPECT_EQ(whole(summary.percentile(0)), -100);
  EXPECT_EQ(whole(summary.percentile(50)), 50);
  EXPECT_EQ(whole(summary.percentile(25)), -25);
  EXPECT_EQ(whole(summary.percentile(100)), 200);
}

TEST(Summary, SumsDoNotOverflow) {
  Summary summary;
  for (int i = 0; i < 3; ++i) summary.add_value(ExpressionValue::of(Int128{~std::uint64_t{0}}));
  EXPECT_TRUE(summary.sum().whole == Int128{~std::uint64_t{0}} * 3);
  summary.add_value(ExpressionValue::of_real(0.5));
  EXPECT_EQ(summary.sum().kind, ExpressionValue::Kind::Real);
}

// Against the sorted values themselves.
TEST(Summary, PercentilesAreRightToOnePartIn128) {
  std::mt19937_64 random(7);
  for (const bool is_real : {false, true}) {
    for (int round = 0; round < 20; ++round) {
      std::vector<double> values;
      Summary summary;
      std::lognormal_distribution<double> spread(round, 2);
      for (int i = 0; i < 1000; ++i) {
        double value = spread(random) * (i % 3 == 0 ? -1 : 1);
        if (!is_real) value = std::trunc(value);
        values.push_back(value);
        summary.add_value(is_real ? ExpressionValue::of_real(value)
                                  : ExpressionValue::of(static_cast<Int128>(value)));
      }
      std::ranges::sort(values);
      for (const double percent : {1.0, 10.0, 33.3, 50.0, 90.0, 99.0, 99.9}) {
        const auto rank = static_cast<std::size_t>(std::ceil(1000 * percent / 100)) - 1;
        const ExpressionValue got = summary.percentile(percent);
        const double shown = is_real ? got.real : static_cast<double>(got.whole);
        EXPECT_LE(std::fabs(shown - values[rank]), std::fabs(values[rank]) / 64 + 1e-12)
            << percent << " " << values[rank];
        EXPECT_GE(shown, values[rank] - 1e-12);
      }
    }
  }
}

}  // namespace
}  // namespace tacho::report
