// Samples that stand for many values each: what BPF programs counted in maps (SUMMARY() in tacho/event.h).
#pragma once

#include <cstdint>

#include "report/decode/payload.h"
#include "report/query/expression_value.h"
#include "report/query/summary.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

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
