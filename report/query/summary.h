// Statistics of many values: how many, their sum, the least, the largest, and how they are spread.
#pragma once

#include <cstdint>
#include <map>

#include "report/decode/payload.h"
#include "report/query/expression_value.h"
#include "report/samples/resolved_sample.h"

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

// Samples that stand for many values each: what BPF programs counted in maps (SUMMARY() in tacho/event.h).

struct CountedFields {
  const PayloadField* count = nullptr;  // how many values: tagged role:count; null: each sample is one
  const PayloadField* sum = nullptr;    // what they come to: role:sum
};
CountedFields counted_fields(const PayloadSchema& schema);

// Whether the field is about all values of a sample together (how many, their sum, the largest), not of each.
bool is_total(const PayloadSchema& schema, const PayloadField& field);

// How many values a sample stands for; 1 where `count` is null or cannot be read.
std::uint64_t count_of(const PayloadField* count, const ResolvedSample& sample);

// The largest value in the slot of a histogram whose least value is `low`; `low` itself where the
// field's values are no slots.
ExpressionValue highest_in_slot(const PayloadField& field, const ExpressionValue& low);
// Whether its values are the least ones of slots.
bool has_slots(const PayloadField& field);
// The slot of a number from 0 up.
struct Slot {
  std::int64_t lowest = 0, highest = 0;
};
Slot slot_of(const PayloadField& field, std::int64_t number);

// How the value of samples that stand for many values is added up.
struct ValueOfMany {
  const PayloadField* sum = nullptr;    // what they come to; null: the value, as often as it counts
  const PayloadField* slots = nullptr;  // the field that the value is, when its values are slots
  bool is_sum = false;                  // the value is that sum: how it is spread is not known
  bool is_total = false;                // the value is of all values of a sample together: it counts once
};
// Adds a sample's value, which stands for `count` values.
void add_values(Summary& to, const ValueOfMany& how, const ExpressionValue& value, std::uint64_t count,
                const ResolvedSample& sample);

}  // namespace tacho::report
