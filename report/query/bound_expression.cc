#include "report/query/bound_expression.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/message_text.h"
#include "cli/nearest.h"
#include "format/base/units.h"
#include "report/query/summary.h"
#include "report/samples/address_name.h"

namespace tacho::report {
namespace {

using cli::NumberUnit;
using cli::Operation;

bool is_leaf(const cli::ExpressionNode& node) { return node.operation <= Operation::Name; }
bool is_comparison(Operation operation) {
  return operation >= Operation::Equal && operation <= Operation::GreaterOrEqual;
}
bool is_likeness(Operation operation) {
  return operation == Operation::Like || operation == Operation::Unlike;
}

std::optional<std::int64_t> enumerator(const PayloadField& field, std::string_view name) {
  const auto row = std::ranges::find(field.enumerators, name,
                                     [](const auto& one) { return std::string_view(one.second); });
  return row == field.enumerators.end() ? std::nullopt : std::optional(row->first);
}

ExpressionValue as_value(const FieldValue& value) {
  if (const auto* bits = std::get_if<std::uint64_t>(&value)) return ExpressionValue::of(*bits);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return ExpressionValue::of(*number);
  if (const auto* real = std::get_if<double>(&value)) return ExpressionValue::of_real(*real);
  return ExpressionValue::of_text(std::get<std::string_view>(value));
}

}  // namespace

std::optional<FieldUnit> field_unit(std::string_view name) {
  const format::Unit* const unit = format::find_unit(name);
  return unit == nullptr ? std::nullopt : std::optional(FieldUnit{unit->quantity, unit->size});
}

class BoundExpression::Binder {
 public:
  Binder(std::string_view option, const cli::Expression& expression, const PayloadSchema* schema, Names names)
      : option_(option),
        expression_(&expression),
        schema_(schema),
        names_(names),
        types_(expression.nodes.size()) {
    bound_.expression_ = &expression;
    bound_.leaves_.resize(expression.nodes.size());
    bound_.values_.resize(expression.nodes.size());
    bound_.functions_.resize(expression.nodes.size());
  }

  Result<BoundExpression> bind() {
    const auto& nodes = expression_->nodes;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      auto done = is_leaf(nodes[i]) ? bind_leaf(i) : bind_operation(i);
      if (!done) return std::move(done.error());
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const Leaf& leaf = bound_.leaves_[i];
      const bool has_meaning = leaf.field != nullptr || leaf.own != nullptr || !leaf.constant.is_nothing();
      if (nodes[i].operation == Operation::Name && !has_meaning) bound_.missing_.push_back(i);
    }
    bound_.is_text_ = types_.back() == Type::Text;
    return std::move(bound_);
  }

 private:
  Error wrong(std::size_t node, std::string_view what) const {
    return cli::error_at(option_, expression_->source, expression_->nodes[node].at, what);
  }

  Result<> bind_leaf(std::size_t i) {
    const cli::ExpressionNode& node = expression_->nodes[i];
    Leaf& leaf = bound_.leaves_[i];
    switch (node.operation) {
      case Operation::Whole:
        leaf.constant = ExpressionValue::of(node.whole);
        types_[i] = Type::Number;
        return Done{};
      case Operation::Real:
        leaf.constant = ExpressionValue::of_real(node.real);
        types_[i] = Type::Number;
        return Done{};
      case Operation::Text:
        leaf.constant = ExpressionValue::of_text(node.text);
        types_[i] = Type::Text;
        return Done{};
      default:
        return bind_name(i);
    }
  }

  Result<> bind_name(std::size_t i) {
    const cli::ExpressionNode& node = expression_->nodes[i];
    Leaf& leaf = bound_.leaves_[i];
    leaf.index = node.index;
    const PayloadField* const field = find_field(node.text);
    if (field != nullptr) {
      if (is_list(*field) ? !has_index(node) : has_index(node)) {
        return wrong(i, is_list(*field) ? "this field is a list; write which element: " + node.text + "[0]"
                                        : "this field is no list");
      }
      leaf.field = field;
      types_[i] = field->kind == format::FieldKind::Text ? Type::Text : Type::Number;
      return Done{};
    }
    leaf.own = find_own_value(node.text);
    if (leaf.own != nullptr) {
      if (has_index(node)) return wrong(i, "this is no list");
      types_[i] = leaf.own->is_text ? Type::Text : Type::Number;
    } else if (node.text == "true" || node.text == "false") {
      leaf.constant = ExpressionValue::of(node.text == "true" ? 1 : 0);
      types_[i] = Type::Number;
    }
    return Done{};
  }

  // The parser keeps no flag for "[0]": the source shows it.
  bool has_index(const cli::ExpressionNode& node) const {
    const std::size_t behind = node.at + node.text.size();
    return behind < expression_->source.size() && expression_->source[behind] == '[';
  }

  const PayloadField* find_field(std::string_view name) const {
    if (schema_ == nullptr || is_own_name(name)) return nullptr;
    const auto field = std::ranges::find(schema_->fields, name, &PayloadField::name);
    return field == schema_->fields.end() ? nullptr : &*field;
  }

  Result<> bind_operation(std::size_t i) {
    const cli::ExpressionNode& node = expression_->nodes[i];
    types_[i] = Type::Number;
    if (node.operation == Operation::Not || node.operation == Operation::Minus)
      return types_[node.left] == Type::Text ? Result<>(wrong(i, "this needs a number, not a text")) : Done{};
    if (is_comparison(node.operation)) {
      for (const auto& [one, other] : {std::pair(node.left, node.right), std::pair(node.right, node.left)}) {
        if (auto done = bind_enum(one, other, node.operation); !done) return done;
        bind_function(one, other, node.operation);
        if (auto done = bind_unit(one, other); !done) return done;
      }
      return check_comparison(i);
    }
    if (types_[node.left] == Type::Text || types_[node.right] == Type::Text)
      return wrong(i, "this needs numbers, not texts");
    return Done{};
  }

  Result<> check_comparison(std::size_t i) const {
    const cli::ExpressionNode& node = expression_->nodes[i];
    const Type left = types_[node.left], right = types_[node.right];
    if (is_likeness(node.operation)) {
      if (left == Type::Number || right == Type::Number)
        return wrong(i, "only texts can look like a pattern; put the pattern in quotes");
      return Done{};
    }
    if (left != Type::Unknown && right != Type::Unknown && left != right)
      return wrong(i, "a text and a number cannot be compared");
    return Done{};
  }

  // `other`, compared with the field `one`: an enumerator, in quotes or without.
  Result<> bind_enum(std::size_t one, std::size_t other, Operation operation) {
    const PayloadField* const field = bound_.leaves_[one].field;
    if (field == nullptr || field->kind != format::FieldKind::Enum) return Done{};
    const cli::ExpressionNode& name = expression_->nodes[other];
    Leaf& leaf = bound_.leaves_[other];
    const bool is_text = name.operation == Operation::Text;
    const bool is_free_name =
        name.operation == Operation::Name && leaf.field == nullptr && leaf.own == nullptr;
    if (!is_text && !is_free_name) return Done{};
    if (is_likeness(operation)) {
      bound_.leaves_[one].is_named = true;
      types_[one] = Type::Text;
      return Done{};
    }
    const auto value = enumerator(*field, name.text);
    if (!value) {
      std::vector<std::string> known;
      for (const auto& row : field->enumerators) known.push_back(row.second);
      return wrong(other,
                   "'" + field->name + "' has no such name" + cli::suggestion_or_all(name.text, known));
    }
    leaf.constant = ExpressionValue::of(*value);
    types_[other] = Type::Number;
    return Done{};
  }

  // `other`, compared with the address `one`: the name of a function, or a pattern of names.
  void bind_function(std::size_t one, std::size_t other, Operation operation) {
    Leaf& leaf = bound_.leaves_[one];
    const bool is_name =
        is_likeness(operation) || operation == Operation::Equal || operation == Operation::Unequal;
    if (names_ != Names::Asked || !is_name || leaf.field == nullptr || types_[other] != Type::Text ||
        !is_named_address(*leaf.field))
      return;
    leaf.is_function = bound_.asks_for_names_ = true;
    types_[one] = Type::Text;
  }

  // `other`, compared with the value `one`, in its unit: 10us is 0.01 for a field in ms.
  Result<> bind_unit(std::size_t one, std::size_t other) {
    const cli::ExpressionNode& number = expression_->nodes[other];
    if (number.operation > Operation::Real || number.unit == NumberUnit::None) return Done{};
    const Leaf& beside = bound_.leaves_[one];
    const std::string_view unit = beside.field != nullptr ? std::string_view(beside.field->unit)
                                  : beside.own != nullptr ? beside.own->unit
                                                          : std::string_view();
    if (unit.empty()) return Done{};
    const auto of_field = field_unit(unit);
    if (!of_field || of_field->kind != number.unit)
      return wrong(other, "the field is in " + std::string(unit) +
                              "; a number of this unit cannot be compared with it");
    Leaf& leaf = bound_.leaves_[other];
    leaf.constant = apply(Operation::Quotient, leaf.constant, ExpressionValue::of(of_field->size));
    return Done{};
  }

  std::string_view option_;
  const cli::Expression* expression_;
  const PayloadSchema* schema_;
  Names names_;
  std::vector<Type> types_;  // by node
  BoundExpression bound_;
};

Result<BoundExpression> BoundExpression::bind(std::string_view option, const cli::Expression& expression,
                                              const PayloadSchema* schema, Names names) {
  return Binder(option, expression, schema, names).bind();
}

// A comparison is exact for slots if a slot starts where the result changes, as with `> 1023` and `>= 1024`.
std::optional<BoundExpression::SlotInDoubt> BoundExpression::doubt_of(std::size_t node) const {
  const cli::ExpressionNode& compared = expression_->nodes[node];
  if (!is_comparison(compared.operation) || is_likeness(compared.operation)) return std::nullopt;
  for (const bool is_turned : {false, true}) {
    const Leaf& one = leaves_[is_turned ? compared.right : compared.left];
    const Leaf& other = leaves_[is_turned ? compared.left : compared.right];
    if (one.field == nullptr || !has_slots(*one.field) || other.field != nullptr || other.own != nullptr)
      continue;
    const ExpressionValue& number = other.constant;
    const double least = number.kind == ExpressionValue::Kind::Real    ? number.real
                         : number.kind == ExpressionValue::Kind::Whole ? static_cast<double>(number.whole)
                                                                       : -1;
    constexpr double kMost = 1ULL << 62;
    if (!(least >= 0 && least < kMost)) continue;
    // The least value on the side of the larger values.
    const bool with_number =
        is_turned ? compared.operation == Operation::Greater || compared.operation == Operation::LessOrEqual
                  : compared.operation == Operation::Less || compared.operation == Operation::GreaterOrEqual;
    const bool is_same = compared.operation == Operation::Equal || compared.operation == Operation::Unequal;
    const double floor = std::floor(least);
    const auto begin =
        static_cast<std::int64_t>(floor) + (with_number || is_same ? (floor < least ? 1 : 0) : 1);
    const auto slot = slot_of(*one.field, begin);
    if (slot.lowest != begin) return SlotInDoubt{node, one.field->name, slot.lowest, slot.highest};
  }
  return std::nullopt;
}

std::optional<BoundExpression::SlotInDoubt> BoundExpression::slot_in_doubt() const {
  for (std::size_t node = 0; node < expression_->nodes.size(); ++node) {
    if (auto doubt = is_leaf(expression_->nodes[node]) ? std::nullopt : doubt_of(node)) return doubt;
  }
  return std::nullopt;
}

ExpressionValue BoundExpression::function_at(std::size_t node, std::uint64_t address,
                                             const ResolvedSample& sample, Resolver* names) {
  if (names == nullptr) return {};
  const symbolize::Frame* const frame = frame_at(*names, sample, address);
  if (frame == nullptr || frame->function.empty()) return {};
  // A frame is valid until the next call of frame().
  functions_[node] = frame->function;
  return ExpressionValue::of_text(functions_[node]);
}

ExpressionValue BoundExpression::leaf_value(std::size_t node, const ResolvedSample& sample, Resolver* names) {
  const Leaf& leaf = leaves_[node];
  if (leaf.own != nullptr) return as_value(leaf.own->of(sample));
  if (leaf.field == nullptr) return leaf.constant;
  const auto& payload = sample.raw->raw;
  if (is_list(*leaf.field) && leaf.index >= elements_of(*leaf.field, payload)) return {};
  const auto value = read_field(*leaf.field, payload, sample.order, leaf.index);
  if (!value) return {};
  if (leaf.is_function) {
    const auto* const bits = std::get_if<std::uint64_t>(&*value);
    const auto* const number = std::get_if<std::int64_t>(&*value);
    if (bits == nullptr && number == nullptr) return {};
    return function_at(node, bits != nullptr ? *bits : static_cast<std::uint64_t>(*number), sample, names);
  }
  return leaf.is_named ? ExpressionValue::of_text(name_of(*leaf.field, *value)) : as_value(*value);
}

// Operands come before their operation, so one pass is enough.
ExpressionValue BoundExpression::value(const ResolvedSample& sample, Resolver* names) {
  const auto& nodes = expression_->nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    values_[i] = is_leaf(nodes[i])
                     ? leaf_value(i, sample, names)
                     : apply(nodes[i].operation, values_[nodes[i].left], values_[nodes[i].right]);
  }
  return values_.back();
}

}  // namespace tacho::report
