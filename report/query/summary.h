// Statistics of many values: how many, their sum, the least, the largest, and how they are spread.
#pragma once

#include <cstdint>
#include <map>

#include "report/query/expression_value.h"

namespace tacho::report {

// Memory follows how many different sizes of value there are, not how many values: a value is kept to 1 part
// in 128.
class Summary {
 public:
  // A number that was there `times` times; texts and nothing are not added.
  void add(const ExpressionValue& value, std::uint64_t times = 1);
  // The parts of add(), where it is known of many values what they come to, and the slot of each: from
  // `low` to `high`. Of values that were not spread there is neither least nor largest nor percentile.
  void add_total(const ExpressionValue& sum, std::uint64_t times);
  void spread(const ExpressionValue& low, const ExpressionValue& high, std::uint64_t times);

  std::uint64_t count() const { return count_; }
  // Of no values: nothing.
  ExpressionValue sum() const;
  ExpressionValue mean() const;
  ExpressionValue least() const { return least_; }
  ExpressionValue largest() const { return largest_; }
  // The smallest value that at least `percent` of 100 of all values do not exceed, to 1 part in 128; of whole
  // numbers below 256 exactly. Never below least() or above largest().
  ExpressionValue percentile(double percent) const;

 private:
  static std::int32_t bucket_of(double value);
  static double highest_in(std::int32_t bucket);

  std::uint64_t count_ = 0, spread_ = 0;
  Int128 whole_sum_ = 0;
  double real_sum_ = 0;
  bool is_real_ = false;  // some value was no whole number
  ExpressionValue least_, largest_;
  std::map<std::int32_t, std::uint64_t> buckets_;
};

}  // namespace tacho::report
