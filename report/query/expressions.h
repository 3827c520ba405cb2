// Expressions over the fields of samples (cli/expression.h): values, their summaries, an expression bound to
// an event, and --where.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/expression.h"
#include "format/base/result.h"
#include "report/decode/payload.h"
#include "report/samples/filter.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/resolver.h"

namespace tacho::report {

// A value that every sample has apart from its payload: thread, CPU, time. Keys and conditions name it.
// Where a payload field has the same name, "sample.NAME" means this one.
struct OwnValue {
  std::string_view name;
  std::string_view unit;  // as PayloadField::unit
  bool is_text = false;
  // nullopt: the sample has none.
  std::optional<FieldValue> (*of)(const ResolvedSample&) = nullptr;
};

std::span<const OwnValue> own_values();
// Finds "comm" or "sample.comm"; null when there is no such value.
const OwnValue* find_own_value(std::string_view name);
// Whether `name` starts with "sample.", so that it cannot be a payload field.
bool is_own_name(std::string_view name);
// "comm, pid, tid, ...", for messages.
std::string own_value_names();

// The value of an expression: an integer, a fraction, a text, or nothing.
struct ExpressionValue {
  enum class Kind : std::uint8_t { Nothing, Whole, Real, Text };
  Kind kind = Kind::Nothing;
  Int128 whole = 0;
  double real = 0;
  std::string_view text;

  static ExpressionValue of(Int128 whole) {
    ExpressionValue value;
    value.kind = Kind::Whole;
    value.whole = whole;
    return value;
  }
  static ExpressionValue of_real(double real) {
    ExpressionValue value;
    value.kind = Kind::Real;
    value.real = real;
    return value;
  }
  static ExpressionValue of_text(std::string_view text) {
    ExpressionValue value;
    value.kind = Kind::Text;
    value.text = text;
    return value;
  }
  bool is_nothing() const { return kind == Kind::Nothing; }
  // A number that is not 0.
  bool is_true() const { return (kind == Kind::Whole && whole != 0) || (kind == Kind::Real && real != 0); }
};

// Operations on integers give integers, except for a quotient with a remainder. An operand that is nothing
// gives nothing, but `true || nothing` is true and `false && nothing` is false. Operations without a result
// (a division by 0, a text with a number) give nothing.
ExpressionValue apply(cli::Operation operation, const ExpressionValue& left, const ExpressionValue& right);

// The size of a field's unit ("us", "KiB") in nanoseconds or bytes; nullopt: neither a time nor a size.
struct FieldUnit {
  cli::NumberUnit kind = cli::NumberUnit::None;
  std::uint64_t size = 1;
};
std::optional<FieldUnit> field_unit(std::string_view name);

// An expression bound to one event: its names are the event's fields, and it can be evaluated for samples.
class BoundExpression {
 public:
  // `schema` is null when the payload has no description. A name that the event lacks evaluates to nothing in
  // every sample, and missing() lists it. With Names::Asked, a field with an address of code can be compared
  // with a text, the name of its function. Refused: a text with a number, a unit that the field cannot have,
  // a name that is not in the field's enum, an element of a field that is no list. `expression` and `schema`
  // must outlive this.
  enum class Names : std::uint8_t { None, Asked };
  static Result<BoundExpression> bind(std::string_view option, const cli::Expression& expression,
                                      const PayloadSchema* schema, Names names = Names::None);

  // `names` must not be null when asks_for_names().
  ExpressionValue value(const ResolvedSample& sample, Resolver* names = nullptr);
  bool asks_for_names() const { return asks_for_names_; }
  // The nodes whose names the event lacks.
  const std::vector<std::size_t>& missing() const { return missing_; }
  // Whether its values are texts.
  bool is_text() const { return is_text_; }
  // The first comparison of a histogram's slots with a number inside a slot, or nullopt. Only the slot's
  // lowest value is compared, so the result is wrong for some values in that slot.
  struct SlotInDoubt {
    std::size_t node = 0;  // of the comparison
    std::string field;
    Int128 lowest = 0, highest = 0;  // in the slot
  };
  std::optional<SlotInDoubt> slot_in_doubt() const;

 private:
  struct Leaf {
    const PayloadField* field = nullptr;
    const OwnValue* own = nullptr;
    std::uint32_t index = 0;
    bool is_named = false;     // the value is the name of an enumerator
    bool is_function = false;  // the value is the name of the function at this address
    ExpressionValue constant;  // used when `field` and `own` are null
  };
  enum class Type : std::uint8_t { Unknown, Number, Text };
  class Binder;

  std::optional<SlotInDoubt> doubt_of(std::size_t node) const;
  ExpressionValue leaf_value(std::size_t node, const ResolvedSample& sample, Resolver* names);
  ExpressionValue function_at(std::size_t node, std::uint64_t address, const ResolvedSample& sample,
                              Resolver* names);

  const cli::Expression* expression_ = nullptr;
  std::vector<Leaf> leaves_;             // by node; empty for operations
  std::vector<ExpressionValue> values_;  // by node: scratch of value()
  std::vector<std::string> functions_;   // by node: scratch for names of functions
  std::vector<std::size_t> missing_;
  bool is_text_ = false;
  bool asks_for_names_ = false;
};

// Refused when the text does not parse. Its names are checked later, against the events of the capture.
Result<std::unique_ptr<SampleCondition>> parse_where(std::string_view option, std::string_view text);

// Statistics of values: count, sum, minimum, maximum, percentiles. Keeps values in logarithmic buckets, exact
// to 1 part in 128, so memory depends on their range and not on their number.
class Summary {
 public:
  // Adds a number `times` times. Texts and nothing are ignored.
  void add_value(const ExpressionValue& value, std::uint64_t times = 1);
  // The two halves of add_value(), for values that were counted in the kernel: their sum, and the slot from
  // `low` to `high` of some of them. Minimum, maximum and percentiles know only values that were given to
  // spread().
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
  Int128 lowest = 0, highest = 0;
};
Slot slot_of(const PayloadField& field, Int128 number);

// The value of a field in a sample; nothing: the payload is too short.
ExpressionValue value_in_sample(const PayloadField& field, const ResolvedSample& sample);

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
