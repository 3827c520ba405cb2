// An expression bound to one event: its names are the event's fields, and it can be evaluated for samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/expression.h"
#include "format/base/result.h"
#include "report/decode/payload.h"
#include "report/query/expression_value.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/resolver.h"

namespace tacho::report {

// The size of a field's unit ("us", "KiB") in nanoseconds or bytes; nullopt: neither a time nor a size.
struct FieldUnit {
  cli::NumberUnit kind = cli::NumberUnit::None;
  std::uint64_t size = 1;
};
std::optional<FieldUnit> field_unit(std::string_view name);

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
    std::int64_t lowest = 0, highest = 0;  // in the slot
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

}  // namespace tacho::report
