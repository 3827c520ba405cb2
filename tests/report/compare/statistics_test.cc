#include "report/compare/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace tacho::report {
namespace {

using Rows = std::vector<std::vector<double>>;

// The statistic as docs/comparing.md defines it, of one quantity, for the captures whose bit is set against
// the others.
double two_sided(const std::vector<double>& row, unsigned chosen, double s0) {
  std::vector<double> sides[2];
  for (std::size_t i = 0; i < row.size(); ++i) sides[(chosen >> i) & 1].push_back(row[i]);
  double means[2] = {}, squares = 0;
  for (int side = 0; side < 2; ++side) {
    for (const double value : sides[side]) means[side] += value / static_cast<double>(sides[side].size());
    for (const double value : sides[side]) squares += (value - means[side]) * (value - means[side]);
  }
  const double n = static_cast<double>(sides[1].size()), m = static_cast<double>(sides[0].size());
  const double variance = squares / std::max(1.0, n + m - 2);
  return std::abs(means[1] - means[0]) / (std::sqrt(variance / n + variance / m) + s0);
}

double in_pairs(const std::vector<double>& row, unsigned flipped, double s0) {
  const std::size_t pairs = row.size() / 2;
  std::vector<double> differences;
  double mean = 0, squares = 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    const double difference = row[pairs + i] - row[i];
    differences.push_back(((flipped >> i) & 1) != 0 ? -difference : difference);
    mean += differences.back() / static_cast<double>(pairs);
  }
  for (const double difference : differences) squares += (difference - mean) * (difference - mean);
  const double variance = squares / std::max(1.0, static_cast<double>(pairs) - 1);
  return std::abs(mean) / (std::sqrt(variance / static_cast<double>(pairs)) + s0);
}

// The adjusted p of each row, over all subsets.
std::vector<double> brute_force(const Rows& rows, std::size_t before, bool is_paired, double s0) {
  const auto captures = rows[0].size();
  const auto bits = is_paired ? before : captures;
  const auto statistic = is_paired ? in_pairs : two_sided;
  const unsigned truth = is_paired ? 0 : (1U << before) - 1;
  std::vector<double> above(rows.size());
  double all = 0;
  for (unsigned chosen = 0; chosen < (1U << bits); ++chosen) {
    if (!is_paired && static_cast<std::size_t>(std::popcount(chosen)) != before) continue;
    double largest = 0;
    for (const auto& row : rows) largest = std::max(largest, statistic(row, chosen, s0));
    ++all;
    for (std::size_t f = 0; f < rows.size(); ++f)
      if (largest >= statistic(rows[f], truth, s0) * (1 - 1e-7)) ++above[f];
  }
  for (double& p : above) p /= all;
  return above;
}

Rows random_rows(std::mt19937_64& random, std::size_t rows, std::size_t captures, bool is_coarse) {
  std::uniform_real_distribution<double> value(0, 1);
  Rows made(rows, std::vector<double>(captures));
  for (auto& row : made)
    for (double& of : row) of = is_coarse ? std::round(value(random) * 4) / 4 : value(random);
  return made;
}

TEST(Statistics, EqualBruteForceOverAllPermutations) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200; ++i) {
    const bool is_paired = i % 4 == 3;
    const std::size_t before = 1 + random() % 5, after = is_paired ? before : 1 + random() % 5;
    const auto rows = random_rows(random, 1 + random() % 6, before + after, i % 3 == 0);
    TestOptions options;
    options.minimal_effect = 1e-4;  // all are tested, unless their values are equal
    options.is_paired = is_paired;
    const auto run = compare_sides(rows, before, options);
    const auto expected = brute_force(rows, before, is_paired, 1e-5);
    for (std::size_t f = 0; f < rows.size(); ++f)
      EXPECT_NEAR(run.of[f].p, run.of[f].can_matter ? expected[f] : 1, 1e-12) << "case " << i << " row " << f;
    EXPECT_FALSE(run.is_sampled);
  }
}

TEST(Statistics, IntervalsAreThoseOfRankStatistics) {
  // wilcox.test(conf.int = TRUE) of R takes the same differences: 5 against 5 the 3rd from either end, 95.2
  // %.
  const Rows rows{{1, 2, 3, 4, 5, 11, 12, 13, 14, 15}};
  const auto run = compare_sides(rows, 5, {});
  EXPECT_NEAR(run.coverage, 1 - 2 * 4.0 / 252, 1e-12);
  EXPECT_EQ(run.of[0].shift, 10);
  EXPECT_EQ(run.of[0].interval.low, 7);
  EXPECT_EQ(run.of[0].interval.high, 13);
  TestOptions paired;
  paired.is_paired = true;
  const Rows pairs{{1, 2, 3, 4, 5, 6, 2, 4, 6, 8, 10, 12}};  // differences 1 to 6
  const auto in_pairs = compare_sides(pairs, 6, paired);
  EXPECT_NEAR(in_pairs.coverage, 1 - 2 * 1.0 / 64, 1e-12);
  EXPECT_EQ(in_pairs.of[0].shift, 3.5);
  EXPECT_EQ(in_pairs.of[0].interval.low, 1);
  EXPECT_EQ(in_pairs.of[0].interval.high, 6);
}

TEST(Statistics, FewCapturesGiveNoVerdict) {
  const auto three = compare_sides(Rows{{0, 0, 0, 1, 1, 1}}, 3, {});
  EXPECT_EQ(three.verdict, Verdict::Indicative);
  EXPECT_EQ(three.of[0].verdict, Verdict::Indicative);
  EXPECT_NEAR(three.least_p, 0.1, 1e-12);
  const auto one = compare_sides(Rows{{0, 1}}, 1, {});
  EXPECT_EQ(one.verdict, Verdict::Indicative);
  EXPECT_EQ(one.coverage, 0);
  EXPECT_EQ(compare_sides(Rows{{0, 0, 0, 0, 1, 1, 1, 1}}, 4, {}).verdict, Verdict::Changed);
  TestOptions paired;  // five signs give 2 of 32 at best
  paired.is_paired = true;
  EXPECT_EQ(compare_sides(Rows{{0, 0, 0, 0, 0, 1, 1, 1, 1, 1}}, 5, paired).verdict, Verdict::Indicative);
}

TEST(Statistics, NoiseThatHidesTheMinimalEffectIsInconclusive) {
  const auto run = compare_sides(Rows{{.1, .3, .2, .4, .15, .35, .25, .12}}, 4, {});
  EXPECT_EQ(run.verdict, Verdict::Inconclusive);
  EXPECT_GT(run.detectable, 0.1);
  EXPECT_GT(run.captures_needed, 50U);
  const auto quiet = compare_sides(
      Rows{{.200, .201, .202, .203, .201, .200, .203, .202}, {.1, .1, .1, .1, .1, .1, .1, .1}}, 4, {});
  EXPECT_EQ(quiet.verdict, Verdict::Same);
  EXPECT_EQ(quiet.tested, 0U);
}

TEST(Statistics, AChangeBelowTheMinimalEffectIsNone) {
  const Rows rows{{.200, .201, .202, .203, .204, .225, .226, .227, .228, .229}};
  EXPECT_EQ(compare_sides(rows, 5, {}).verdict, Verdict::Same);
  TestOptions strict;
  strict.minimal_effect = 0.02;
  EXPECT_EQ(compare_sides(rows, 5, strict).verdict, Verdict::Changed);
}

TEST(Statistics, ManyCapturesAreSampledTheSameEachTime) {
  std::mt19937_64 random(2);
  const auto rows = random_rows(random, 3, 60, false);
  const auto first = compare_sides(rows, 30, {}), second = compare_sides(rows, 30, {});
  EXPECT_TRUE(first.is_sampled);
  EXPECT_EQ(first.p, second.p);
  EXPECT_GT(first.p, 0);
}

// Captures of 4,000 samples of 40 functions; `moved` of all samples are added to one of them on the second
// side. The rate of each capture varies by `drift` from function to function, as code and its neighbours'
// caches do.
Rows simulated(std::mt19937_64& random, double moved, double drift) {
  constexpr std::size_t kFunctions = 40, kCaptures = 10;
  Rows rows(kFunctions, std::vector<double>(kCaptures));
  std::normal_distribution<double> noise;
  for (std::size_t capture = 0; capture < kCaptures; ++capture) {
    std::vector<double> weights;
    for (std::size_t f = 0; f < kFunctions; ++f)
      weights.push_back((1 + static_cast<double>(f % 7)) * std::exp(drift * noise(random)));
    double total = 0;
    for (const double weight : weights) total += weight;
    if (capture >= kCaptures / 2) weights[20] += total * moved / (1 - moved);
    std::discrete_distribution<std::size_t> draw(weights.begin(), weights.end());
    for (int sample = 0; sample < 4'000; ++sample) rows[draw(random)][capture] += 1.0 / 4'000;
  }
  return rows;
}

TEST(Statistics, SimulatedCapturesOfOneProgramAreSeldomCalledDifferent) {
  std::mt19937_64 random(3);
  int changed = 0, significant = 0;
  for (int i = 0; i < 100; ++i) {
    TestOptions options;
    options.minimal_effect = 0.01;  // many functions vary so much
    const auto run = compare_sides(simulated(random, 0, 0.1), 5, options);
    changed += run.verdict == Verdict::Changed ? 1 : 0;
    significant += run.p <= options.alpha ? 1 : 0;
  }
  EXPECT_LE(significant, 11);  // 5 are expected; more than 11 in one of 200 such tests
  EXPECT_LE(changed, 5);
}

TEST(Statistics, ASimulatedChangeIsFoundAndNamed) {
  std::mt19937_64 random(4);
  int found = 0, others = 0;
  for (int i = 0; i < 100; ++i) {
    const auto run = compare_sides(simulated(random, 0.05, 0.05), 5, {});
    found += run.of[20].verdict == Verdict::Changed ? 1 : 0;
    for (std::size_t f = 0; f < run.of.size(); ++f)
      others += f != 20 && run.of[f].verdict == Verdict::Changed ? 1 : 0;
  }
  EXPECT_GE(found, 90);
  EXPECT_EQ(others, 0);
}

// Recorded captures of a program of 40 functions, before and after one of them takes 5 % of the total more
// (tests/support/record_runs.py): each function's share, by capture.
struct RecordedRuns {
  std::string name;
  std::vector<std::vector<double>> before, after;
  static constexpr std::size_t kSlow = 17;

  // Of a quiet machine, and beside a busy neighbour.
  static std::vector<RecordedRuns> read_all() {
    return {read("compared-runs.txt"), read("compared-runs-neighbour.txt")};
  }

  static RecordedRuns read(const std::string& name) {
    RecordedRuns runs{.name = name};
    std::ifstream file(std::string(TACHO_TEST_DATA) + "/" + name);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string side;
      words >> side;
      std::vector<double> shares;
      for (double count = 0; words >> count;) shares.push_back(count);
      const double total = std::accumulate(shares.begin(), shares.end(), 0.0);
      for (double& share : shares) share /= total;
      (side == "before" ? runs.before : runs.after).push_back(std::move(shares));
    }
    return runs;
  }
};

// Five captures of one list, and five of another; of the same list if there is one only, all different.
Rows five_each(std::mt19937_64& random, std::vector<std::vector<double>> first,
               std::vector<std::vector<double>> second) {
  constexpr std::size_t kCaptures = 5;
  std::shuffle(first.begin(), first.end(), random);
  std::shuffle(second.begin(), second.end(), random);
  if (second.empty()) second.assign(first.begin() + kCaptures, first.end());
  Rows rows(first[0].size());
  for (std::size_t f = 0; f < rows.size(); ++f) {
    for (std::size_t i = 0; i < kCaptures; ++i) rows[f].push_back(first[i][f]);
    for (std::size_t i = 0; i < kCaptures; ++i) rows[f].push_back(second[i][f]);
  }
  return rows;
}

// Of 100 comparisons: those with each verdict, and where the slow function and no other changed.
struct Rates {
  int changed = 0, same = 0, inconclusive = 0, named = 0;
};
Rates rates_of(std::mt19937_64& random, const std::vector<std::vector<double>>& first,
               const std::vector<std::vector<double>>& second, double minimal_effect) {
  Rates rates;
  for (int i = 0; i < 100; ++i) {
    TestOptions options;
    options.minimal_effect = minimal_effect;
    const auto run = compare_sides(five_each(random, first, second), 5, options);
    rates.changed += run.verdict == Verdict::Changed ? 1 : 0;
    rates.same += run.verdict == Verdict::Same ? 1 : 0;
    rates.inconclusive += run.verdict == Verdict::Inconclusive ? 1 : 0;
    const auto changed = std::ranges::count(run.of, Verdict::Changed, &Tested::verdict);
    rates.named += changed == 1 && run.of[RecordedRuns::kSlow].verdict == Verdict::Changed ? 1 : 0;
  }
  return rates;
}

TEST(Statistics, RecordedCapturesOfOneProgramAreSeldomCalledDifferent) {
  std::mt19937_64 random(5);
  for (const auto& runs : RecordedRuns::read_all()) {
    ASSERT_EQ(runs.before.size(), 24U) << runs.name;
    for (const auto* const side : {&runs.before, &runs.after})
      for (const double minimal_effect : {0.03, 0.005}) {  // with the smaller one all functions can matter
        const Rates rates = rates_of(random, *side, {}, minimal_effect);
        EXPECT_LE(rates.changed, 5) << runs.name << " " << minimal_effect;
      }
  }
}

TEST(Statistics, ARecordedChangeOfFivePercentIsFoundAndNamed) {
  std::mt19937_64 random(6);
  for (const auto& runs : RecordedRuns::read_all()) {
    const Rates rates = rates_of(random, runs.before, runs.after, 0.03);
    EXPECT_GE(rates.named, 90) << runs.name;
    EXPECT_EQ(rates.same, 0) << runs.name;  // what cannot be decided is never the same
  }
}

}  // namespace
}  // namespace tacho::report
