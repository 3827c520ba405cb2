// Histograms: counts of values by buckets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "report/decode/payload.h"

namespace tacho::report {

struct Bucket {
  Int128 low = 0, high = 0;  // inclusive, from kLowest to kHighest
  std::uint64_t count = 0;
  std::uint64_t left_out = 0;  // number of empty buckets before it that are left out
};

// A histogram: buckets are powers of two, or steps of equal width.
class Distribution {
 public:
  // `step` 0: powers of two, as in bcc: 0 and 1 share the first bucket, then 2-3, 4-7, ...; negative values
  // mirror them: -1, -3 to -2, -7 to -4. With `bits` (up to kMostBits) each power of two has 2^bits buckets
  // of equal width, if it has so many values, and 0 and 1 have one each. Else buckets of `step` values, one
  // of which begins at 0.
  explicit Distribution(std::uint64_t step = 0, int bits = 0)
      : step_(std::min(step, kWidestStep)), bits_(std::clamp(bits, 0, kMostBits)) {}
  static constexpr int kMostBits = 6;

  void add_value(Int128 value, std::uint64_t count = 1);

  // All buckets from the lowest to the highest with a count. Empty ones between are included; with steps and
  // parts of powers, long gaps are left out and counted.
  std::vector<Bucket> buckets() const;
  bool has_steps() const { return step_ != 0; }
  std::uint64_t total() const { return total_; }

  // The index of a value's bucket, ascending with values; and the bucket itself, without a count. Values
  // beyond kLowest and kHighest are in the buckets of these.
  Int128 index_of(Int128 value) const;
  Bucket bucket_at(Int128 index) const;

 private:
  static constexpr std::uint64_t kWidestStep = std::uint64_t{1} << 62;
  std::uint64_t step_;
  int bits_;
  std::map<Int128, std::uint64_t> counts_;  // by bucket index, ascending
  std::uint64_t total_ = 0;
};

}  // namespace tacho::report
