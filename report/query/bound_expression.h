// An expression whose names are fields of one event, ready to be asked of its samples.
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

// What one of a field's unit ("us", "KiB") is in nanoseconds or bytes; nothing: it is neither a time nor a
// size.
struct FieldUnit {
  cli::NumberUnit kind = cli::NumberUnit::None;
  std::uint64_t size = 1;
};
std::optional<FieldUnit> field_unit(std::string_view name);

class BoundExpression {
 public:
  // `schema` null: the event has no payload that is described. A name that the event does not have is nothing
  // in every sample, and stands in missing(). With Names::Asked a field that is an address of code can be
  // compared with a text: the name of its function. An error of the use: texts and numbers that do not go
  // together, a number with a unit that the field beside it cannot have, a name that its enum does not have,
  // an element of what is no list. Both must outlive this.
  enum class Names : std::uint8_t { None, Asked };
  static Result<BoundExpression> bind(std::string_view option, const cli::Expression& expression,
                                      const PayloadSchema* schema, Names names = Names::None);

  // `names` is needed where asks_for_names().
  ExpressionValue value(const ResolvedSample& sample, Resolver* names = nullptr);
  bool asks_for_names() const { return asks_for_names_; }
  // Nodes of names that mean nothing in this event.
  const std::vector<std::size_t>& missing() const { return missing_; }
  // Whether its values are texts.
  bool is_text() const { return is_text_; }
  // A comparison of a histogram's slots with a number that does not begin a slot: some values of its slot
  // would answer otherwise than the least one, which is compared. The first one; nothing: there is none.
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
    bool is_named = false;     // an enum's names are asked for
    bool is_function = false;  // the name of the function at this address is
    ExpressionValue constant;  // where both are null
  };
  enum class Type : std::uint8_t { Unknown, Number, Text };
  class Binder;

  std::optional<SlotInDoubt> doubt_of(std::size_t node) const;
  ExpressionValue leaf_value(std::size_t node, const ResolvedSample& sample, Resolver* names);
  ExpressionValue function_at(std::size_t node, std::uint64_t address, const ResolvedSample& sample,
                              Resolver* names);

  const cli::Expression* expression_ = nullptr;
  std::vector<Leaf> leaves_;             // by node; of operations nothing is set
  std::vector<ExpressionValue> values_;  // by node: scratch of value()
  std::vector<std::string> functions_;   // likewise, where an address is asked for its name
  std::vector<std::size_t> missing_;
  bool is_text_ = false;
  bool asks_for_names_ = false;
};

}  // namespace tacho::report
