#include "report/query/expressions.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <compare>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/expression.h"
#include "cli/message_text.h"
#include "cli/nearest.h"
#include "format/base/units.h"
#include "report/samples/resolver.h"

namespace tacho::report {
namespace {

constexpr std::string_view kPrefix = "sample.";

using OwnFact = std::optional<FieldValue>;
constexpr std::uint64_t kNoTime = ~std::uint64_t{0};  // Sample::time of an event without times

// The kernel's own threads and idle ones are pid 0 and -1.
OwnFact number(std::uint32_t value) { return std::int64_t{static_cast<std::int32_t>(value)}; }

constexpr OwnValue kOwn[] = {
    {"comm", "", true, [](const ResolvedSample& sample) -> OwnFact { return sample.comm; }},
    {"pid", "", false, [](const ResolvedSample& sample) { return number(sample.pid()); }},
    {"tid", "", false, [](const ResolvedSample& sample) { return number(sample.tid()); }},
    {"cpu", "", false, [](const ResolvedSample& sample) { return number(sample.fields->cpu); }},
    // As script prints it.
    {"time", "s", false,
     [](const ResolvedSample& sample) -> OwnFact {
       if (sample.fields->time == kNoTime) return std::nullopt;
       return static_cast<double>(sample.fields->time) / 1e9;
     }},
    {"period", "", false, [](const ResolvedSample& sample) -> OwnFact { return sample.period; }},
    {"cgroup", "", true, [](const ResolvedSample& sample) -> OwnFact { return sample.cgroup(); }},
    {"event", "", true,
     [](const ResolvedSample& sample) -> OwnFact { return std::string_view(sample.event().name); }},
};

}  // namespace

std::span<const OwnValue> own_values() { return kOwn; }

const OwnValue* find_own_value(std::string_view name) {
  if (is_own_name(name)) name.remove_prefix(kPrefix.size());
  const auto row = std::ranges::find(kOwn, name, &OwnValue::name);
  return row == std::end(kOwn) ? nullptr : row;
}

bool is_own_name(std::string_view name) { return name.starts_with(kPrefix); }

std::string own_value_names() {
  std::string names;
  for (const OwnValue& one : kOwn) names.append(names.empty() ? "" : ", ").append(one.name);
  return names;
}

namespace {

using Kind = ExpressionValue::Kind;
using cli::Operation;

ExpressionValue truth(bool is_so) { return ExpressionValue::of(is_so ? 1 : 0); }
bool is_number(const ExpressionValue& value) { return value.kind == Kind::Whole || value.kind == Kind::Real; }

long double as_real(const ExpressionValue& value) {
  return value.kind == Kind::Whole ? static_cast<long double>(value.whole)
                                   : static_cast<long double>(value.real);
}

std::optional<std::partial_ordering> order_of(const ExpressionValue& left, const ExpressionValue& right) {
  if (left.kind == Kind::Text && right.kind == Kind::Text) return left.text <=> right.text;
  if (!is_number(left) || !is_number(right)) return std::nullopt;
  if (left.kind == Kind::Whole && right.kind == Kind::Whole) {
    return left.whole < right.whole   ? std::partial_ordering::less
           : left.whole > right.whole ? std::partial_ordering::greater
                                      : std::partial_ordering::equivalent;
  }
  return as_real(left) <=> as_real(right);
}

ExpressionValue compare(Operation operation, const ExpressionValue& left, const ExpressionValue& right) {
  if (operation == Operation::Like || operation == Operation::Unlike) {
    if (left.kind != Kind::Text || right.kind != Kind::Text) return {};
    return truth(cli::looks_like(left.text, right.text) == (operation == Operation::Like));
  }
  const auto order = order_of(left, right);
  if (!order) return {};
  switch (operation) {
    case Operation::Equal:
      return truth(*order == 0);
    case Operation::Unequal:
      return truth(*order != 0);
    case Operation::Less:
      return truth(*order < 0);
    case Operation::LessOrEqual:
      return truth(*order <= 0);
    case Operation::Greater:
      return truth(*order > 0);
    default:
      return truth(*order >= 0);
  }
}

ExpressionValue logical(Operation operation, const ExpressionValue& left, const ExpressionValue& right) {
  const bool decides = operation == Operation::Or;  // the truth value of one side that decides the result
  const auto is_decided = [decides](const ExpressionValue& one) {
    return is_number(one) && one.is_true() == decides;
  };
  if (is_decided(left) || is_decided(right)) return truth(decides);
  if (!is_number(left) || !is_number(right)) return {};
  return truth(!decides);
}

// Limits a result so that the next operation cannot overflow: 2^63 times 2^63 fits into 128 bits.
ExpressionValue bounded(Int128 whole) {
  constexpr Int128 kMost = Int128{std::numeric_limits<std::uint64_t>::max()};
  if (whole > kMost || whole < -kMost) return ExpressionValue::of_real(static_cast<double>(whole));
  return ExpressionValue::of(whole);
}

ExpressionValue calculate_whole(Operation operation, Int128 left, Int128 right) {
  const auto bits = [](Int128 value) { return static_cast<std::uint64_t>(value); };
  switch (operation) {
    case Operation::BitOr:
      return ExpressionValue::of(bits(left) | bits(right));
    case Operation::BitAnd:
      return ExpressionValue::of(bits(left) & bits(right));
    case Operation::Plus:
      return bounded(left + right);
    case Operation::Difference:
      return bounded(left - right);
    case Operation::Times: {
      Int128 product = 0;
      if (__builtin_mul_overflow(left, right, &product))
        return ExpressionValue::of_real(static_cast<double>(left) * static_cast<double>(right));
      return bounded(product);
    }
    case Operation::Quotient:
      if (right == 0) return {};
      if (left % right == 0) return ExpressionValue::of(left / right);
      return ExpressionValue::of_real(static_cast<double>(left) / static_cast<double>(right));
    default:
      return right == 0 ? ExpressionValue() : ExpressionValue::of(left % right);
  }
}

ExpressionValue calculate(Operation operation, const ExpressionValue& left, const ExpressionValue& right) {
  if (!is_number(left) || !is_number(right)) return {};
  if (left.kind == Kind::Whole && right.kind == Kind::Whole)
    return calculate_whole(operation, left.whole, right.whole);
  const auto a = static_cast<double>(as_real(left)), b = static_cast<double>(as_real(right));
  switch (operation) {
    case Operation::Plus:
      return ExpressionValue::of_real(a + b);
    case Operation::Difference:
      return ExpressionValue::of_real(a - b);
    case Operation::Times:
      return ExpressionValue::of_real(a * b);
    case Operation::Quotient:
      return b == 0 ? ExpressionValue() : ExpressionValue::of_real(a / b);
    case Operation::Rest:
      return b == 0 ? ExpressionValue() : ExpressionValue::of_real(std::fmod(a, b));
    default:
      return {};  // bits of a fraction
  }
}

}  // namespace

ExpressionValue apply(Operation operation, const ExpressionValue& left, const ExpressionValue& right) {
  switch (operation) {
    case Operation::Whole:
    case Operation::Real:
    case Operation::Text:
    case Operation::Name:
      return left;
    case Operation::Not:
      return is_number(left) ? truth(!left.is_true()) : ExpressionValue();
    case Operation::Minus:
      return calculate(Operation::Difference, ExpressionValue::of(0), left);
    case Operation::Or:
    case Operation::And:
      return logical(operation, left, right);
    case Operation::Equal:
    case Operation::Unequal:
    case Operation::Like:
    case Operation::Unlike:
    case Operation::Less:
    case Operation::LessOrEqual:
    case Operation::Greater:
    case Operation::GreaterOrEqual:
      return compare(operation, left, right);
    default:
      return calculate(operation, left, right);
  }
}

namespace {

using cli::NumberUnit;

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
        return wrong(i, is_list(*field) ? "this field is a list; choose an element: " + node.text + "[0]"
                                        : "this field is not a list");
      }
      leaf.field = field;
      types_[i] = field->kind == format::FieldKind::Text ? Type::Text : Type::Number;
      return Done{};
    }
    leaf.own = find_own_value(node.text);
    if (leaf.own != nullptr) {
      if (has_index(node)) return wrong(i, "this is not a list");
      types_[i] = leaf.own->is_text ? Type::Text : Type::Number;
    } else if (node.text == "true" || node.text == "false") {
      leaf.constant = ExpressionValue::of(node.text == "true" ? 1 : 0);
      types_[i] = Type::Number;
    }
    return Done{};
  }

  // The parser keeps no flag for "[0]": the source shows it.
  bool has_index(const cli::ExpressionNode& node) const {
    const std::size_t after = node.at + node.text.size();
    return after < expression_->source.size() && expression_->source[after] == '[';
  }

  const PayloadField* find_field(std::string_view name) const {
    return schema_ == nullptr || is_own_name(name) ? nullptr : field_named(*schema_, name);
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
    constexpr double kMost = 0x1p64;
    if (!(least >= 0 && least < kMost)) continue;
    // The least value on the side of the larger values.
    const bool with_number =
        is_turned ? compared.operation == Operation::Greater || compared.operation == Operation::LessOrEqual
                  : compared.operation == Operation::Less || compared.operation == Operation::GreaterOrEqual;
    const bool is_same = compared.operation == Operation::Equal || compared.operation == Operation::Unequal;
    const double floor = std::floor(least);
    const Int128 begin = static_cast<Int128>(floor) + (with_number || is_same ? (floor < least ? 1 : 0) : 1);
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
  if (leaf.own != nullptr) {
    const auto own = leaf.own->of(sample);
    return own ? as_value(*own) : ExpressionValue{};
  }
  if (leaf.field == nullptr) return leaf.constant;
  const auto& payload = sample.fields->raw;
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

namespace {

class Where : public SampleCondition {
 public:
  Where(std::string_view option, cli::Expression expression)
      : option_(option), expression_(std::move(expression)) {}

  Result<> bind(const format::EventSet& events, const format::Features& features) override {
    events_ = &events;
    features_ = &features;
    schemas_.emplace(events, features);
    std::vector<std::size_t> missing_in(expression_.nodes.size());
    for (std::size_t event = 0; event < events.size(); ++event) {
      auto bound = BoundExpression::bind(option_, expression_, schemas_->schema_of(event),
                                         BoundExpression::Names::Asked);
      if (!bound) return std::move(bound.error()).in(events[event].name);
      for (const std::size_t node : bound->missing()) ++missing_in[node];
      asks_for_names_ = asks_for_names_ || bound->asks_for_names();
      if (const auto doubt = bound->slot_in_doubt(); doubt && note_.empty()) note_ = note_on(*doubt);
      by_event_.emplace_back(std::move(*bound));
    }
    if (note_.empty()) note_ = note_on_names(events);
    for (std::size_t node = 0; node < missing_in.size(); ++node) {
      if (missing_in[node] != 0 && missing_in[node] == events.size()) return unknown(node, events);
    }
    return Done{};
  }

  std::unique_ptr<SampleCondition> fork() const override {
    auto forked = std::make_unique<Where>(option_, expression_);
    static_cast<void>(forked->bind(*events_, *features_));  // as this was bound: no error
    return forked;
  }

  bool asks_for_names() const override { return asks_for_names_; }
  std::string note() const override { return note_; }

  bool holds(const ResolvedSample& sample, Resolver* names) override {
    const std::size_t event = sample.record_event;
    // An event of a pipe that came after bind().
    while (by_event_.size() <= event) {
      auto bound = BoundExpression::bind(option_, expression_, schemas_->schema_of(by_event_.size()),
                                         BoundExpression::Names::Asked);
      by_event_.push_back(bound ? std::optional(std::move(*bound)) : std::nullopt);
    }
    return by_event_[event] && by_event_[event]->value(sample, names).is_true();
  }

 private:
  std::string note_on(const BoundExpression::SlotInDoubt& doubt) const {
    return option_ + " '" + expression_.source + "': '" + doubt.field +
           "' was counted in slots, and the slot " + decimal_text(doubt.lowest) + " to " +
           decimal_text(doubt.highest) + " has values on both sides of the number; all of it counts as " +
           decimal_text(doubt.lowest);
  }

  // About `event == "NAME"` with an unknown event, which matches nothing, or with != everything.
  std::string note_on_names(const format::EventSet& events) const {
    std::vector<std::string> names;
    for (const format::Event& event : events) names.push_back(event.name);
    for (const cli::ExpressionNode& one : expression_.nodes) {
      if (one.operation != cli::Operation::Equal && one.operation != cli::Operation::Unequal) continue;
      const cli::ExpressionNode* sides[] = {&expression_.nodes[one.left], &expression_.nodes[one.right]};
      if (sides[0]->operation != cli::Operation::Name) std::swap(sides[0], sides[1]);
      if (sides[0]->operation != cli::Operation::Name || sides[1]->operation != cli::Operation::Text)
        continue;
      if (sides[0]->text != "event" && sides[0]->text != "sample.event") continue;
      const std::string& wanted = sides[1]->text;
      if (std::ranges::find(names, wanted) != names.end()) continue;
      return option_ + " '" + expression_.source + "': there is no event '" + wanted + "'" +
             cli::suggestion_or_all(wanted, names);
    }
    return {};
  }

  // Whether the name is the right side of a comparison: perhaps a text without its quotes.
  bool is_compared_with(std::size_t node) const {
    return std::ranges::any_of(expression_.nodes, [node](const cli::ExpressionNode& one) {
      return is_comparison(one.operation) && one.right == node;
    });
  }

  Error unknown(std::size_t node, const format::EventSet& events) {
    const std::string& wanted = expression_.nodes[node].text;
    if (wanted == "uid" || wanted == "gid")
      return cli::error_at(option_, expression_.source, expression_.nodes[node].at,
                           "a capture does not have the users of processes; filter while recording, with "
                           "--filter '" +
                               wanted + " == NUMBER'");
    std::vector<std::string> names;
    for (const OwnValue& own : own_values()) names.emplace_back(own.name);
    std::string what = "no event here has this; every sample has " + own_value_names();
    for (std::size_t event = 0; event < events.size(); ++event) {
      const PayloadSchema* const schema = schemas_->schema_of(event);
      if (schema == nullptr || schema->fields.empty()) continue;
      what += "; '" + events[event].name + "' has";
      for (const PayloadField& field : schema->fields) {
        what += (&field == schema->fields.data() ? " " : ", ") + field.name;
        names.push_back(field.name);
      }
    }
    std::string hint = cli::suggestion(wanted, names);
    if (is_compared_with(node)) hint = "; a text needs quotes: \"" + wanted + "\"" + hint;
    return cli::error_at(option_, expression_.source, expression_.nodes[node].at, what + hint);
  }

  std::string option_;
  cli::Expression expression_;
  const format::EventSet* events_ = nullptr;
  const format::Features* features_ = nullptr;
  std::optional<EventSchemas> schemas_;
  std::vector<std::optional<BoundExpression>> by_event_;
  bool asks_for_names_ = false;
  std::string note_;
};

}  // namespace

Result<std::unique_ptr<SampleCondition>> parse_where(std::string_view option, std::string_view text) {
  auto expression = cli::parse_expression(option, text);
  if (!expression) return std::move(expression.error());
  return std::unique_ptr<SampleCondition>(std::make_unique<Where>(option, std::move(*expression)));
}

namespace {

constexpr int kBits = 7;  // of a value's mantissa that a bucket keeps
constexpr std::int32_t kPerPower = 1 << kBits;
constexpr std::int32_t kLowestPower = -64;  // smaller values count as 0

double as_double(const ExpressionValue& value) {
  return value.kind == Kind::Whole ? static_cast<double>(value.whole) : value.real;
}

bool is_countable(const ExpressionValue& value) {
  return value.kind == Kind::Whole || (value.kind == Kind::Real && std::isfinite(value.real));
}

bool is_less(const ExpressionValue& a, const ExpressionValue& b) {
  return apply(cli::Operation::Less, a, b).is_true();
}

}  // namespace

// The bucket of a value: 0 for 0, positive numbers for positive values in their order, negative for negative.
std::int32_t Summary::bucket_of(double value) {
  int power = 0;
  const double mantissa = std::frexp(std::fabs(value), &power);  // from 0.5 to below 1
  if (mantissa == 0 || power <= kLowestPower) return 0;
  const auto part = static_cast<std::int32_t>((mantissa - 0.5) * 2 * kPerPower);
  const std::int32_t bucket = (power - kLowestPower) * kPerPower + std::min(part, kPerPower - 1);
  return value < 0 ? -bucket : bucket;
}

double Summary::highest_in(std::int32_t bucket) {
  if (bucket == 0) return 0;
  const std::int32_t magnitude = std::abs(bucket);
  const int power = magnitude / kPerPower + kLowestPower;
  // The highest of negative values is the one nearest to 0: the bucket's start.
  const std::int32_t part = magnitude % kPerPower;
  if (bucket < 0) return -std::ldexp(0.5 + 0.5 * part / kPerPower, power);
  return std::ldexp(0.5 + 0.5 * (part + 1) / kPerPower, power);
}

void Summary::add_value(const ExpressionValue& value, std::uint64_t times) {
  if (!is_countable(value) || times == 0) return;
  add_total(times == 1 ? value : apply(cli::Operation::Times, value, ExpressionValue::of(times)), times);
  spread(value, value, times);
}

void Summary::add_total(const ExpressionValue& sum, std::uint64_t times) {
  if (!is_countable(sum)) return;
  count_ += times;
  const bool is_real = sum.kind == Kind::Real;
  is_real_ = is_real_ || is_real;
  if (is_real || __builtin_add_overflow(whole_sum_, sum.whole, &whole_sum_)) real_sum_ += as_double(sum);
}

void Summary::spread(const ExpressionValue& low, const ExpressionValue& high, std::uint64_t times) {
  if (!is_countable(low) || !is_countable(high) || times == 0) return;
  if (spread_ == 0 || is_less(low, least_)) least_ = low;
  if (spread_ == 0 || is_less(largest_, high)) largest_ = high;
  spread_ += times;
  buckets_[bucket_of(as_double(high))] += times;
}

ExpressionValue Summary::sum() const {
  if (count_ == 0) return {};
  if (!is_real_ && real_sum_ == 0) return ExpressionValue::of(whole_sum_);
  return ExpressionValue::of_real(static_cast<double>(whole_sum_) + real_sum_);
}

ExpressionValue Summary::mean() const {
  if (count_ == 0) return {};
  return ExpressionValue::of_real(as_double(sum()) / static_cast<double>(count_));
}

ExpressionValue Summary::percentile(double percent) const {
  if (spread_ == 0) return {};
  const double wanted = std::ceil(static_cast<double>(spread_) * percent / 100);
  const auto rank =
      std::clamp<std::uint64_t>(wanted > 0 ? static_cast<std::uint64_t>(wanted) : 1, 1, spread_);
  std::uint64_t seen = 0;
  for (const auto& [bucket, count] : buckets_) {
    seen += count;
    if (seen < rank) continue;
    const double highest = highest_in(bucket);
    ExpressionValue value = ExpressionValue::of_real(highest);
    // The highest integer in a bucket is below the start of the next one.
    if (!is_real_)
      value = ExpressionValue::of(static_cast<Int128>(bucket > 0 ? std::ceil(highest) - 1 : highest));
    if (is_less(value, least_)) return least_;
    return is_less(largest_, value) ? largest_ : value;
  }
  return largest_;
}

namespace {

constexpr std::string_view kLog2 = "log2", kLinear = "linear:";

const PayloadField* number_with_role(const PayloadSchema& schema, std::string_view role) {
  const PayloadField* const field = field_with_role(schema, role);
  return field == nullptr || is_list(*field) ? nullptr : field;
}

// Of slots of equal width.
std::uint64_t step_of(const PayloadField& field) {
  const std::string_view digits = std::string_view(field.format).substr(kLinear.size());
  std::uint64_t step = 1;
  (void)std::from_chars(digits.data(), digits.data() + digits.size(), step);
  return std::max<std::uint64_t>(step, 1);
}

}  // namespace

CountedFields counted_fields(const PayloadSchema& schema) {
  return {number_with_role(schema, "count"), number_with_role(schema, "sum")};
}

bool is_total(const PayloadSchema& schema, const PayloadField& field) {
  const bool is_of_each =
      field.role == "key" || field.role.starts_with("table:") || field.role == "value" || has_slots(field);
  return counted_fields(schema).count != nullptr && !is_of_each;
}

std::uint64_t count_of(const PayloadField* count, const ResolvedSample& sample) {
  if (count == nullptr) return 1;
  const auto number = read_number(*count, sample.fields->raw, sample.order);
  return number && *number >= 0 ? static_cast<std::uint64_t>(*number) : 1;
}

bool has_slots(const PayloadField& field) {
  return field.format == kLog2 || field.format.starts_with(kLinear);
}

ExpressionValue highest_in_slot(const PayloadField& field, const ExpressionValue& low) {
  if (low.kind != ExpressionValue::Kind::Whole || !has_slots(field)) return low;
  if (field.format == kLog2) return ExpressionValue::of(low.whole <= 0 ? 1 : 2 * low.whole - 1);
  return ExpressionValue::of(low.whole + step_of(field) - 1);
}

Slot slot_of(const PayloadField& field, Int128 number) {
  if (!has_slots(field)) return {number, number};
  if (field.format == kLog2) {
    const Int128 low = std::bit_floor(static_cast<std::uint64_t>(std::clamp(number, Int128{0}, kHighest)));
    return low <= 1 ? Slot{0, 1} : Slot{low, 2 * low - 1};
  }
  const Int128 step = step_of(field), low = number / step * step;
  return {low, low + step - 1};
}

ExpressionValue value_in_sample(const PayloadField& field, const ResolvedSample& sample) {
  const auto value = read_field(field, sample.fields->raw, sample.order);
  return value ? as_value(*value) : ExpressionValue();
}

void add_values(Summary& to, const ValueOfMany& how, const ExpressionValue& value, std::uint64_t count,
                const ResolvedSample& sample) {
  if (how.is_total) return to.add_value(value, 1);
  if (how.sum == nullptr && how.slots == nullptr) return to.add_value(value, count);
  const ExpressionValue high = how.slots != nullptr ? highest_in_slot(*how.slots, value) : value;
  if (!how.is_sum) to.spread(value, high, count);
  if (how.sum == nullptr)
    return to.add_total(apply(cli::Operation::Times, value, ExpressionValue::of(count)), count);
  if (const auto sum = read_number(*how.sum, sample.fields->raw, sample.order))
    to.add_total(ExpressionValue::of(*sum), count);
}

}  // namespace tacho::report
