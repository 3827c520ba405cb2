#include "report/views/heatmap/heat_map.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "report/output/heat_colours.h"
#include "report/views/heatmap/heat_box.h"
#include "report/views/heatmap/heat_forms.h"

namespace tacho::report {
namespace {

struct Sample {
  std::uint64_t time;
  Int128 value;
};

HeatMap map_of(const std::vector<Sample>& samples, HeatScale scale) {
  if (scale.most_columns == 0) scale.most_columns = 50;
  if (scale.most_rows == 0) scale.most_rows = 20;
  HeatGrid grid(scale);
  for (const auto& [time, value] : samples) grid.add_value(time, value, 1);
  return grid.finish();
}

// Every box has the samples that lie in it, and no others.
void expect_counts(const std::vector<Sample>& samples, const HeatMap& map) {
  ASSERT_LE(map.columns, 50u);
  ASSERT_LE(map.rows.size(), 20u);
  std::uint64_t sum = 0;
  for (std::size_t column = 0; column < map.columns; ++column) {
    for (std::size_t row = 0; row < map.rows.size(); ++row) {
      const HeatBox box = box_of(map, column, row);
      std::uint64_t count = 0;
      for (const auto& [time, value] : samples) count += box.has(time, value) ? 1 : 0;
      EXPECT_EQ(map.at(column, row), count) << column << " " << row;
      sum += count;
    }
  }
  EXPECT_EQ(sum, samples.size());
  EXPECT_EQ(map.total, samples.size());
  for (std::size_t row = 1; row < map.rows.size(); ++row)
    EXPECT_EQ(map.rows[row].low, map.rows[row - 1].high + 1) << "rows leave nothing out";
}

TEST(HeatGrid, EveryBoxHasTheSamplesInIt) {
  std::mt19937_64 chance(5);
  for (const double spread : {1e3, 1e7, 1e12}) {
    for (const bool has_negative : {false, true}) {
      std::vector<Sample> samples;
      for (int i = 0; i < 300; ++i) {
        const double size = std::exp(std::log(spread) * static_cast<double>(chance() % 1000) / 1000);
        const auto value = static_cast<std::int64_t>(size);
        samples.push_back({5'000'000'000 + chance() % static_cast<std::uint64_t>(spread),
                           has_negative && i % 3 == 0 ? -value : value});
      }
      for (const auto& [is_linear, bits] : {std::pair(false, 3), std::pair(false, 0), std::pair(true, 0)}) {
        HeatScale scale;
        scale.is_linear = is_linear;
        scale.bits = bits;
        expect_counts(samples, map_of(samples, scale));
      }
    }
  }
}

TEST(HeatGrid, TheWidestRangesFit) {
  const std::vector<Sample> samples{
      {0, 0}, {~std::uint64_t{0} - 1, kHighest}, {1, kLowest}, {1u << 31, -1}, {77, 1}};
  for (const bool is_linear : {false, true}) {
    HeatScale scale;
    scale.is_linear = is_linear;
    const HeatMap map = map_of(samples, scale);
    expect_counts(samples, map);
    EXPECT_EQ(map.rows.front().low, kLowest);
    EXPECT_EQ(map.rows.back().high, kHighest);
  }
}

TEST(HeatGrid, ColumnsAreWidenedByTwoFiveAndTen) {
  HeatScale scale;
  scale.interval = 3'000'000;
  for (const std::uint64_t last : {100'000'000ULL, 300'000'000ULL, 700'000'000ULL, 100'000'000'000ULL}) {
    const HeatMap map = map_of({{0, 5}, {last, 5}}, scale);
    std::uint64_t by = map.interval / 3'000'000;
    EXPECT_EQ(map.interval % 3'000'000, 0u);
    while (by % 10 == 0) by /= 10;
    EXPECT_TRUE(by == 1 || by == 2 || by == 5) << map.interval;
    EXPECT_GT(map.columns, 50u / 3) << "no wider than needed";
  }
}

TEST(HeatGrid, RowsThatAreAlwaysThereNeedNoSamples) {
  HeatScale scale;
  scale.is_linear = true;
  scale.step = 50;
  scale.shown_range = Bucket{0, 999};
  const HeatMap map = map_of({{0, 170}}, scale);
  EXPECT_EQ(map.rows.size(), 20u);
  EXPECT_EQ(map.at(0, 3), 1u);
  EXPECT_TRUE(map_of({}, scale).is_empty());
}

TEST(HeatWords, ABoxReadsAsItIsWritten) {
  HeatFacts facts;
  facts.name = "lat";
  facts.unit = "us";
  const HeatBox boxes[] = {{12'500'000'000, 12'600'000'000, 1024, 2047},
                           {1, 2, -7, -1},
                           {0, std::numeric_limits<std::uint64_t>::max(), kLowest, kHighest},
                           {3'000'000'000, std::numeric_limits<std::uint64_t>::max(), 5, 5}};
  const auto same = [](const HeatBox& a, const HeatBox& b) {
    return std::tie(a.from, a.until, a.low, a.high) == std::tie(b.from, b.until, b.low, b.high);
  };
  for (const HeatBox& box : boxes) {
    const auto read = parse_box(box_argument(box, facts), facts);
    ASSERT_TRUE(read) << box_argument(box, facts);
    EXPECT_TRUE(same(read->box, box)) << box_argument(box, facts);
  }
  EXPECT_EQ(box_argument(boxes[0], facts), "12.5..12.6,1024..2047");
  const auto with_units = parse_box("12.5..,1.5ms..2ms", facts);
  ASSERT_TRUE(with_units);
  EXPECT_EQ(with_units->box.low, 1500);
  EXPECT_EQ(with_units->box.high, 2000);
  facts.period = 1'000'000'000;
  const HeatBox offsets{12'000'000'000, 13'000'000'000, 340'000'000, 359'999'999};
  EXPECT_EQ(box_argument(offsets, facts), "12..13,0.34..0.36");
  EXPECT_TRUE(same(parse_box("12..13,0.34..0.36", facts)->box, offsets));
  EXPECT_TRUE(same(parse_box("..,..", facts)->box, {0, ~std::uint64_t{0}, 0, 999'999'999}));
}

TEST(HeatWords, WhatIsNoBoxIsRefused) {
  HeatFacts facts;
  facts.unit = "ns";
  for (const char* const text :
       {"", ",", "1", "1,", ",1", "1..2", "2..1,5", "1..2,7..5", "1..1,5", "a,b", "1,2,3", "1,4k",
        "1..2 3..4,5", "-1..2,3", "50%..60%,1", "1,1+1", "1..2..3,4", "1,lat"})
    EXPECT_FALSE(parse_box(text, facts)) << text;
}

TEST(HeatWords, ClassesOfCountsAscendFromOne) {
  HeatFacts facts;
  for (const std::uint64_t period : {0ULL, 7ULL}) {
    facts.period = period;
    for (const std::uint64_t most : {1ULL, 2ULL, 9ULL, 10ULL, 11ULL, 20ULL, 1000ULL, ~0ULL}) {
      HeatMap map;
      map.most = most;
      const auto classes = count_classes(map, facts, 10);
      EXPECT_EQ(classes.size(), std::min<std::uint64_t>(most, 10));
      EXPECT_EQ(classes.front(), 1u);
      EXPECT_LE(classes.back(), most);
      for (std::size_t i = 1; i < classes.size(); ++i) EXPECT_GT(classes[i], classes[i - 1]);
      EXPECT_EQ(class_of(most, classes), classes.size() - 1);
      EXPECT_EQ(class_of(1, classes), 0u);
    }
  }
}

TEST(HeatBox, TheRatioGrowsWithWhatIsSeenAndNotWithSharesAlone) {
  const Tally all{100, 10'000};
  EXPECT_NEAR(log_likelihood_ratio({1, 100}, all), 0, 1e-9);
  EXPECT_LT(log_likelihood_ratio({1, 0}, all), kLeastG2);
  EXPECT_GT(log_likelihood_ratio({50, 10}, all), log_likelihood_ratio({3, 0}, all));
  // 2 * sum of seen * ln(seen / expected), by hand: {10, 20; 90, 80}.
  const double by_hand = 2 * (10 * std::log(10 / 15.) + 20 * std::log(20 / 15.) + 90 * std::log(90 / 85.) +
                              80 * std::log(80 / 85.));
  EXPECT_NEAR(log_likelihood_ratio({10, 20}, {100, 100}), by_hand, 1e-9);
}

// Lightness by CIE L*, which eyes of every kind see.
double lightness(std::uint32_t colour) {
  const auto part = [&](int shift) {
    const double value = static_cast<double>(colour >> shift & 255) / 255;
    return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
  };
  const double y = 0.2126 * part(16) + 0.7152 * part(8) + 0.0722 * part(0);
  return 116 * std::cbrt(y) - 16;
}

double luminance(std::uint32_t colour) { return std::pow((lightness(colour) + 16) / 116, 3); }

TEST(HeatSvg, OneSampleStandsOutFromTheGround) {
  const HeatColours colours = heat_colours();
  constexpr std::uint32_t kGround = 0xf3f3f1, kDarkGround = 0x23262c;
  EXPECT_GT((luminance(kGround) + 0.05) / (luminance(colours.light.front()) + 0.05), 3);
  EXPECT_GT((luminance(colours.dark.front()) + 0.05) / (luminance(kDarkGround) + 0.05), 3);
}

TEST(HeatSvg, ColoursAreOrderedByLightness) {
  const HeatColours colours = heat_colours();
  ASSERT_EQ(colours.light.size(), colours.dark.size());
  for (std::size_t i = 1; i < colours.light.size(); ++i) {
    EXPECT_LT(lightness(colours.light[i]), lightness(colours.light[i - 1]) - 3) << i;
    EXPECT_GT(lightness(colours.dark[i]), lightness(colours.dark[i - 1]) + 3) << i;
  }
}

}  // namespace
}  // namespace tacho::report
