#include "report/compare/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace tacho::report {
namespace {

// A constant in the denominator of each statistic, as a part of the minimal effect (s0 of SAM: Tusher, 2001),
// so that a tiny difference of a quantity without noise does not outdo a large one.
constexpr double kSmallNoise = 0.1;
// Equal statistics of two labellings may differ by rounding.
constexpr double kRounding = 1e-9;
constexpr double kZero = 1e-12;  // a smaller part of the squares is rounding, whose root would be seen
constexpr std::uint64_t kSampledLabellings = 20'000;
constexpr std::uint64_t kSeed = 0x7461'6368'6f;
constexpr double kFloorPart = 0.95;
constexpr std::uint64_t kMostSplits = 1'000;  // of one side, for the floor
constexpr std::size_t kMostExactRanks = 40;   // captures a side; beyond, rank sums are normal
constexpr double kPower = 0.8;

double number_of_subsets(std::size_t of, std::size_t size) {
  double number = 1;
  for (std::size_t i = 1; i <= size; ++i)
    number = number * static_cast<double>(of - size + i) / static_cast<double>(i);
  return std::round(number);
}

// The quantile of the normal distribution, by bisection of its distribution function.
double normal_quantile(double part) {
  double low = -10, high = 10;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < part ? low : high) = middle;
  }
  return (low + high) / 2;
}

// The same numbers with each standard library, unlike std::uniform_int_distribution.
std::size_t random_below(std::mt19937_64& random, std::size_t end) {
  return static_cast<std::size_t>(random() % end);
}

// Labels of captures (1: before, 0: after) or signs of pairs (1, -1), one way after another; the first is the
// true one.
class Labellings {
 public:
  Labellings(std::size_t captures, std::size_t before, bool is_paired, std::uint64_t most)
      : before_(before), is_paired_(is_paired), labels_(captures) {
    const double all = is_paired ? std::ldexp(1.0, static_cast<int>(std::min<std::size_t>(captures, 1'000)))
                                 : number_of_subsets(captures, before);
    is_sampled_ = all > static_cast<double>(most);
    number_ = is_sampled_ ? std::min(most, kSampledLabellings) : static_cast<std::uint64_t>(all);
    for (std::size_t i = 0; i < captures; ++i) labels_[i] = is_paired || i < before ? 1 : 0;
  }

  std::uint64_t number() const { return number_; }
  bool is_sampled() const { return is_sampled_; }
  double all() const { return static_cast<double>(number_); }
  std::span<const double> labels() const { return labels_; }

  void next() {
    if (is_sampled_)
      draw();
    else if (is_paired_)
      flip();
    else
      std::ranges::prev_permutation(labels_);
  }

 private:
  void flip() {  // the next number in binary: -1 is a digit that is set
    for (double& sign : labels_) {
      sign = -sign;
      if (sign < 0) return;
    }
  }
  void draw() {
    if (is_paired_) {
      for (double& sign : labels_) sign = (random_() >> 63) != 0 ? 1 : -1;
      return;
    }
    for (std::size_t i = 0; i < before_; ++i)
      std::swap(labels_[i], labels_[i + random_below(random_, labels_.size() - i)]);
  }

  std::size_t before_;
  bool is_paired_, is_sampled_ = false;
  std::uint64_t number_ = 0;
  std::vector<double> labels_;
  std::mt19937_64 random_{kSeed};
};

// The quantities that are tested, as the numbers that labels multiply: captures' values around their mean, or
// differences in pairs. With both, the statistic is a function of the sum S of label * number and of what no
// label changes: |S| k / (sqrt((squares - S*S k) / freedom * k) + s0).
class Statistics {
 public:
  Statistics(std::span<const std::vector<double>> values, std::span<const std::size_t> tested,
             std::size_t before, const TestOptions& options)
      : tested_(tested.size()), s0_(kSmallNoise * options.minimal_effect) {
    const std::size_t captures = values.empty() ? before : values[0].size();
    units_ = options.is_paired ? before : captures;
    const auto n = static_cast<double>(before), m = static_cast<double>(captures - before);
    k_ = options.is_paired ? 1 / n : 1 / n + 1 / m;
    freedom_ = std::max(1.0, options.is_paired ? n - 1 : n + m - 2);
    numbers_.resize(units_ * tested_);
    squares_.resize(tested_);
    sums_.resize(tested_);
    for (std::size_t f = 0; f < tested_; ++f) take(f, values[tested[f]], before, options.is_paired);
  }

  std::size_t units() const { return units_; }

  // The statistics of all quantities with these labels.
  void label(std::span<const double> labels, std::vector<double>& statistics) {
    std::ranges::fill(sums_, 0.0);
    for (std::size_t unit = 0; unit < units_; ++unit) {
      const double label = labels[unit];
      if (label == 0) continue;
      const double* numbers = numbers_.data() + unit * tested_;
      for (std::size_t f = 0; f < tested_; ++f) sums_[f] += label * numbers[f];
    }
    statistics.resize(tested_);
    for (std::size_t f = 0; f < tested_; ++f) statistics[f] = std::abs(sums_[f]) * k_ / (noise(f) + s0_);
  }

  // The standard error of the difference of the sides, with the last labels.
  double noise(std::size_t f) const {
    const double within = squares_[f] - sums_[f] * sums_[f] * k_;
    return within <= kZero * squares_[f] ? 0 : std::sqrt(within / freedom_ * k_);
  }
  double s0() const { return s0_; }
  double scale() const { return k_; }

 private:
  void take(std::size_t f, const std::vector<double>& of, std::size_t before, bool is_paired) {
    const double mean = std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size());
    for (std::size_t unit = 0; unit < units_; ++unit) {
      const double number = is_paired ? of[before + unit] - of[unit] : of[unit] - mean;
      numbers_[unit * tested_ + f] = number;
      squares_[f] += number * number;
    }
  }

  std::size_t tested_, units_ = 0;
  double s0_, k_ = 0, freedom_ = 1;
  std::vector<double> numbers_;  // of the first unit, by quantity; then of the second
  std::vector<double> squares_, sums_;
};

// The distribution of the rank statistic behind an interval: P(U = u), of Mann and Whitney, or W+, of
// Wilcoxon.
std::vector<double> mann_whitney(std::size_t n, std::size_t m) {
  // by m; after round i: those of i and m. P(i, j, u) = i/(i+j) P(i-1, j, u-j) + j/(i+j) P(i, j-1, u)
  std::vector<std::vector<double>> of(m + 1, {1.0});
  for (std::size_t i = 1; i <= n; ++i) {
    of[0] = {1.0};
    for (std::size_t j = 1; j <= m; ++j) {
      std::vector<double> next(i * j + 1);
      const double part = static_cast<double>(i) / static_cast<double>(i + j);
      for (std::size_t u = 0; u < of[j].size(); ++u) next[u + j] += part * of[j][u];
      for (std::size_t u = 0; u < of[j - 1].size(); ++u) next[u] += (1 - part) * of[j - 1][u];
      of[j] = std::move(next);
    }
  }
  return of[m];
}
std::vector<double> signed_ranks(std::size_t n) {
  std::vector<double> of{1.0};
  for (std::size_t rank = 1; rank <= n; ++rank) {
    std::vector<double> next(of.size() + rank);
    for (std::size_t w = 0; w < of.size(); ++w) {
      next[w] += of[w] / 2;
      next[w + rank] += of[w] / 2;
    }
    of = std::move(next);
  }
  return of;
}

// Which of the sorted differences bound the interval: the `index`-th from either end.
struct IntervalRank {
  std::size_t index = 0;
  double coverage = 0;
};
IntervalRank exact_rank(const std::vector<double>& distribution, double alpha) {
  IntervalRank rank;
  double below = distribution[0];
  rank.coverage = std::max(0.0, 1 - 2 * below);
  while (2 * (rank.index + 1) < distribution.size() && 2 * (below + distribution[rank.index + 1]) <= alpha) {
    below += distribution[++rank.index];
    rank.coverage = 1 - 2 * below;
  }
  return rank;
}
IntervalRank interval_rank(std::size_t before, std::size_t after, bool is_paired, double alpha) {
  if (std::max(before, after) <= kMostExactRanks)
    return exact_rank(is_paired ? signed_ranks(before) : mann_whitney(before, after), alpha);
  const auto n = static_cast<double>(before), m = static_cast<double>(after);
  const double mean = is_paired ? n * (n + 1) / 4 : n * m / 2;
  const double deviation = std::sqrt(is_paired ? n * (n + 1) * (2 * n + 1) / 24 : n * m * (n + m + 1) / 12);
  const double index = std::floor(mean + normal_quantile(alpha / 2) * deviation);
  return {static_cast<std::size_t>(std::max(0.0, index)), 1 - alpha};
}

// The differences whose median is the estimate of Hodges and Lehmann, sorted: of all captures of one side
// from all of the other; means of all two differences in pairs.
std::vector<double> all_differences(const std::vector<double>& values, std::size_t before, bool is_paired) {
  std::vector<double> differences;
  if (is_paired) {
    for (std::size_t i = 0; i < before; ++i)
      for (std::size_t j = i; j < before; ++j)
        differences.push_back((values[before + i] - values[i] + values[before + j] - values[j]) / 2);
  } else {
    for (std::size_t i = 0; i < before; ++i)
      for (std::size_t j = before; j < values.size(); ++j) differences.push_back(values[j] - values[i]);
  }
  std::ranges::sort(differences);
  return differences;
}

double middle_of(const std::vector<double>& sorted) {
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// Differences between the means of two halves of one side, by splits, in units in which one value's variance
// is that of the difference.
void split(std::span<const double> side, std::vector<double>& differences) {
  const std::size_t half = side.size() / 2;
  if (half == 0) return;
  const double sum = std::accumulate(side.begin(), side.end(), 0.0);
  const auto h = static_cast<double>(half), rest = static_cast<double>(side.size() - half);
  const double unit = std::sqrt(1 / h + 1 / rest);
  Labellings splits(side.size(), half, false, kMostSplits);
  for (std::uint64_t i = 0; i < splits.number(); ++i, splits.next()) {
    double of_half = 0;
    for (std::size_t at = 0; at < side.size(); ++at) of_half += splits.labels()[at] * side[at];
    differences.push_back(std::abs(of_half / h - (sum - of_half) / rest) / unit);
  }
}

double noise_floor(const std::vector<double>& values, std::size_t before, bool is_paired, double scale) {
  std::vector<double> differences;
  if (is_paired) {
    std::vector<double> pairs(before);
    for (std::size_t i = 0; i < before; ++i) pairs[i] = values[before + i] - values[i];
    split(pairs, differences);
  } else {
    split(std::span(values).first(before), differences);
    split(std::span(values).subspan(before), differences);
  }
  return differences.empty() ? 0 : percentile(std::move(differences), kFloorPart) * std::sqrt(scale);
}

// Medians, the estimate and its interval.
void estimate(const std::vector<double>& values, std::size_t before, bool is_paired, const IntervalRank& rank,
              Tested& to) {
  to.before = median({values.begin(), values.begin() + static_cast<std::ptrdiff_t>(before)});
  to.after = median({values.begin() + static_cast<std::ptrdiff_t>(before), values.end()});
  const auto differences = all_differences(values, before, is_paired);
  to.shift = middle_of(differences);
  const std::size_t index = std::min(rank.index, (differences.size() - 1) / 2);
  to.interval = {differences[index], differences[differences.size() - 1 - index]};
}

bool can_matter(const std::vector<double>& values, const TestOptions& options) {
  const auto [least, most] = std::ranges::minmax(values);
  return most - least >= options.minimal_effect;
}

Verdict verdict_of(const Tested& tested, const TestOptions& options) {
  const double effect = std::abs(tested.shift);
  if (tested.p <= options.alpha && effect >= options.minimal_effect && effect > tested.floor)
    return Verdict::Changed;
  const bool is_within =
      tested.interval.low > -options.minimal_effect && tested.interval.high < options.minimal_effect;
  return is_within ? Verdict::Same : Verdict::Inconclusive;
}

// The statistic above which a run is significant, and the p of each quantity.
double take_p(Statistics& statistics, std::size_t units, std::size_t before, const TestOptions& options,
              std::span<const std::size_t> tested, TestedRun& run) {
  Labellings labellings(units, before, options.is_paired, options.most_labellings);
  run.labellings = labellings.number();
  run.is_sampled = labellings.is_sampled();
  std::vector<double> largest, of_labels, observed;
  largest.reserve(run.labellings);
  for (std::uint64_t i = 0; i < run.labellings; ++i, labellings.next()) {
    statistics.label(labellings.labels(), of_labels);
    if (i == 0) observed = of_labels;
    largest.push_back(of_labels.empty() ? 0 : *std::ranges::max_element(of_labels));
  }
  std::ranges::sort(largest);
  for (std::size_t f = 0; f < tested.size(); ++f) {
    const auto at = std::ranges::lower_bound(largest, observed[f] * (1 - kRounding));
    run.of[tested[f]].p = static_cast<double>(largest.end() - at) / labellings.all();
    run.p = std::min(run.p, run.of[tested[f]].p);
  }
  const auto above = static_cast<std::size_t>(options.alpha * labellings.all());
  return largest[largest.size() - std::clamp<std::size_t>(above, 1, largest.size())];
}

double least_p(std::size_t before, std::size_t after, bool is_paired) {
  const double all = is_paired ? std::ldexp(1.0, static_cast<int>(std::min<std::size_t>(before, 1'000)))
                               : number_of_subsets(before + after, before);
  // Of equal sides, the opposite labels have the same statistic.
  return std::min(1.0, (before == after || is_paired ? 2 : 1) / all);
}

// Captures a side that find the minimal effect of a quantity with this noise in 4 of 5 runs, at the level of
// `alpha` for all that are tested (Bonferroni: for many captures the maximum is as strict).
std::size_t captures_for(double deviation, std::size_t tested, const TestOptions& options) {
  const double z =
      normal_quantile(1 - options.alpha / 2 / static_cast<double>(std::max<std::size_t>(1, tested))) +
      normal_quantile(kPower);
  const double wanted = options.minimal_effect * (1 - kSmallNoise * 3);  // what s0 takes of it
  const double of_side = (options.is_paired ? 1 : 2) * std::pow(deviation * z / wanted, 2);
  return static_cast<std::size_t>(std::min(1e9, std::ceil(of_side)));
}

// What could have been seen: by the noise with the true labels.
void take_power(Statistics& statistics, std::size_t before, std::size_t after, double critical,
                std::span<const std::size_t> tested, const TestOptions& options, TestedRun& run) {
  std::vector<double> of_labels;
  const Labellings labellings(statistics.units(), before, options.is_paired, options.most_labellings);
  statistics.label(labellings.labels(), of_labels);
  double largest_noise = 0;
  const bool has_undecided =
      std::ranges::any_of(tested, [&](std::size_t f) { return run.of[f].verdict == Verdict::Inconclusive; });
  for (std::size_t f = 0; f < tested.size(); ++f) {
    Tested& of = run.of[tested[f]];
    const double noise = statistics.noise(f);
    of.detectable = std::max(options.minimal_effect,
                             critical * (noise + statistics.s0()) + normal_quantile(kPower) * noise);
    if (has_undecided && of.verdict != Verdict::Inconclusive) continue;
    run.detectable = std::max(run.detectable, of.detectable);
    largest_noise = std::max(largest_noise, noise);
  }
  run.captures_needed = captures_for(largest_noise / std::sqrt(statistics.scale()), tested.size(), options);
  if (has_undecided) run.captures_needed = std::max(run.captures_needed, std::min(before, after) + 1);
  run.captures_needed = std::max(run.captures_needed, kLeastCaptures);
}

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::Changed:
      return "changed";
    case Verdict::Same:
      return "same";
    case Verdict::Inconclusive:
      return "inconclusive";
    case Verdict::Indicative:
      break;
  }
  return "indicative";
}

double percentile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  const double at = part * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::ptrdiff_t>(at);
  std::ranges::nth_element(values, values.begin() + below);
  const double low = values[static_cast<std::size_t>(below)];
  if (static_cast<double>(below) == at) return low;
  return low + (at - static_cast<double>(below)) *
                   (*std::min_element(values.begin() + below + 1, values.end()) - low);
}

double median(std::vector<double> values) { return percentile(std::move(values), 0.5); }

TestedRun compare_sides(std::span<const std::vector<double>> values, std::size_t before,
                        const TestOptions& options) {
  TestedRun run;
  run.of.resize(values.size());
  if (values.empty()) return run;
  const std::size_t after = values[0].size() - before;
  run.least_p = least_p(before, after, options.is_paired);
  const IntervalRank rank = interval_rank(before, after, options.is_paired, options.alpha);
  run.coverage = rank.coverage;
  const bool has_verdict = std::min(before, after) >= kLeastCaptures && run.least_p <= options.alpha;

  std::vector<std::size_t> tested;
  for (std::size_t f = 0; f < values.size(); ++f) {
    estimate(values[f], before, options.is_paired, rank, run.of[f]);
    run.of[f].can_matter = can_matter(values[f], options);
    if (run.of[f].can_matter) tested.push_back(f);
  }
  run.tested = tested.size();
  Statistics statistics(values, tested, before, options);
  const double critical = take_p(statistics, statistics.units(), before, options, tested, run);
  for (Tested& of : run.of) {
    if (of.can_matter)
      of.floor = noise_floor(values[static_cast<std::size_t>(&of - run.of.data())], before, options.is_paired,
                             statistics.scale());
    of.verdict = has_verdict ? verdict_of(of, options) : Verdict::Indicative;
  }
  take_power(statistics, before, after, critical, tested, options, run);
  const auto has = [&run](Verdict verdict) {
    return std::ranges::find(run.of, verdict, &Tested::verdict) != run.of.end();
  };
  run.verdict = !has_verdict                 ? Verdict::Indicative
                : has(Verdict::Changed)      ? Verdict::Changed
                : has(Verdict::Inconclusive) ? Verdict::Inconclusive
                                             : Verdict::Same;
  return run;
}

}  // namespace tacho::report
