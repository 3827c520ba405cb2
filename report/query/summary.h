// Statistics of values: count, sum, minimum, maximum, percentiles; and how samples that hold counts are
// added.
#pragma once

#include <cstdint>
#include <map>

#include "report/decode/payload.h"
#include "report/query/expression_value.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

// Keeps values in logarithmic buckets, exact to 1 part in 128, so memory depends on their range and not on
// their number.
class Summary {
 public:
  // Adds a number `times` times. Texts and nothing are ignored.
  void add(const ExpressionValue& value, std::uint64_t times = 1);
  // The two halves of add(), for values that were counted in the kernel: their sum, and the slot from `low`
  // to `high` of some of them. Minimum, maximum and percentiles know only values that were given to spread().
  void add_total(const ExpressionValue& sum, std::uint64_t times);
  void spread(const ExpressionValue& low, const ExpressionValue& high, std::uint64_t times);

  std::uint64_t count() const { return count_; }
  // All of these are nothing when there are no values.
  ExpressionValue sum() const;
  ExpressionValue mean() const;
  ExpressionValue least() const { return least_; }
  ExpressionValue largest() const { return largest_; }
  // The smallest value that at least `percent` per cent of the values do not exceed, to 1 part in 128, and
  // exact for integers below 256. Always between least() and largest().
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

// The fields of samples that hold counts: each has many values, which a BPF program counted in a map
// (SUMMARY() in tacho/event.h).

struct CountedFields {
  const PayloadField* count = nullptr;  // the number of values (role:count); null: each sample is one value
  const PayloadField* sum = nullptr;    // their sum (role:sum)
};
CountedFields counted_fields(const PayloadSchema& schema);

// Whether the field is about all values of a sample together: their count, sum or maximum.
bool is_total(const PayloadSchema& schema, const PayloadField& field);

// The number of values in a sample; 1 when `count` is null or cannot be read.
std::uint64_t count_of(const PayloadField* count, const ResolvedSample& sample);

// The largest value in the histogram slot that starts at `low`; `low` itself when the field has no slots.
ExpressionValue highest_in_slot(const PayloadField& field, const ExpressionValue& low);
// Whether the field's values are the lowest values of histogram slots.
bool has_slots(const PayloadField& field);
// The histogram slot of a number that is not negative.
struct Slot {
  std::int64_t lowest = 0, highest = 0;
};
Slot slot_of(const PayloadField& field, std::int64_t number);

// How the values of a sample are added to a Summary.
struct ValueOfMany {
  const PayloadField* sum = nullptr;    // the field with their sum; null: the value times the count
  const PayloadField* slots = nullptr;  // the value's field, when it has histogram slots
  bool is_sum = false;                  // the value is that sum, so single values are unknown
  bool is_total = false;                // the value is about all values of the sample: it counts once
};
// Adds a sample that holds `count` values.
void add_values(Summary& to, const ValueOfMany& how, const ExpressionValue& value, std::uint64_t count,
                const ResolvedSample& sample);

}  // namespace tacho::report
