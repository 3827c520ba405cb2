// Statistics of a comparison: which of many quantities (functions' shares) differ between two sets of
// captures. The unit is the capture: samples of one run are not independent, so their number says nothing
// here.
//
// One p speaks for all quantities: that of the largest statistic among them, over all ways to label the
// captures "before" and "after" (a permutation test with the maximum; exact, with any distribution and
// correlation). docs/comparing.md says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tacho::report {

struct TestOptions {
  double alpha = 0.05;           // the rate of false alarms of a whole run, at most
  double minimal_effect = 0.03;  // a smaller change does not matter; in the unit of the values, above 0
  bool is_paired = false;        // the i-th capture of each side were recorded together
  std::uint64_t most_labellings = 200'000;  // beyond these a sample of them is taken, always the same one
};

enum class Verdict : std::uint8_t {
  Changed,       // significant, and at least the minimal effect, and above the noise within the sides
  Same,          // the whole interval is below the minimal effect
  Inconclusive,  // neither: more captures would say
  Indicative,    // too few captures for any verdict
};
std::string_view verdict_name(Verdict verdict);  // "changed"

struct Interval {
  double low = 0, high = 0;
};

// One quantity.
struct Tested {
  Verdict verdict = Verdict::Indicative;
  bool can_matter = false;       // its values differ by the minimal effect somewhere: it is in the test
  double p = 1;                  // adjusted for all quantities of the run
  double before = 0, after = 0;  // medians
  double shift = 0;              // Hodges and Lehmann's estimate of after - before
  Interval interval;             // of the shift; its coverage is that of the run
  double floor = 0;              // the noise within the sides: 95 % of splits of one side differ by less
  double detectable = 0;         // the smallest change that would have been seen in 4 of 5 such runs
};

struct TestedRun {
  Verdict verdict = Verdict::Indicative;
  double p = 1;
  double least_p = 1;   // the smallest p that so many captures can give
  double coverage = 0;  // of the intervals; 0: too few captures for intervals
  std::uint64_t labellings = 0;
  bool is_sampled = false;  // not all labellings
  std::size_t tested = 0;   // quantities that can matter
  double detectable = 0;    // of the noisiest undecided quantity; of all tested ones, if none is undecided
  std::size_t captures_needed = 0;  // a side, to find the minimal effect there
  std::vector<Tested> of;           // by quantity
};

constexpr std::size_t kLeastCaptures = 4;  // a side, for a verdict

// `values`: by quantity, those of `before` captures, then those of the others. At least one a side, and
// equally many if paired.
TestedRun compare_sides(std::span<const std::vector<double>> values, std::size_t before,
                        const TestOptions& options);

double median(std::vector<double> values);
// The value below which a `part` of the values is, between two values in proportion: percentile(v, 0.5) is
// the median.
double percentile(std::vector<double> values, double part);

}  // namespace tacho::report
