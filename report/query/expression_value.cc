#include "report/query/expression_value.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <iterator>
#include <limits>
#include <optional>

namespace tacho::report {

namespace {

constexpr std::string_view kPrefix = "sample.";

// The kernel's own threads and idle ones are pid 0 and -1.
FieldValue number(std::uint32_t value) { return std::int64_t{static_cast<std::int32_t>(value)}; }

constexpr OwnValue kOwn[] = {
    {"comm", "", true, [](const ResolvedSample& sample) -> FieldValue { return sample.comm; }},
    {"pid", "", false, [](const ResolvedSample& sample) { return number(sample.pid()); }},
    {"tid", "", false, [](const ResolvedSample& sample) { return number(sample.tid()); }},
    {"cpu", "", false, [](const ResolvedSample& sample) { return number(sample.raw->cpu); }},
    // As script prints it.
    {"time", "s", false,
     [](const ResolvedSample& sample) -> FieldValue { return static_cast<double>(sample.raw->time) / 1e9; }},
    {"period", "", false, [](const ResolvedSample& sample) -> FieldValue { return sample.period; }},
    {"cgroup", "", true, [](const ResolvedSample& sample) -> FieldValue { return sample.cgroup(); }},
    {"event", "", true,
     [](const ResolvedSample& sample) -> FieldValue { return std::string_view(sample.event().name); }},
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

ExpressionValue both(Operation operation, const ExpressionValue& left, const ExpressionValue& right) {
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

ExpressionValue reckon_whole(Operation operation, Int128 left, Int128 right) {
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

ExpressionValue reckon(Operation operation, const ExpressionValue& left, const ExpressionValue& right) {
  if (!is_number(left) || !is_number(right)) return {};
  if (left.kind == Kind::Whole && right.kind == Kind::Whole)
    return reckon_whole(operation, left.whole, right.whole);
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
      return reckon(Operation::Difference, ExpressionValue::of(0), left);
    case Operation::Or:
    case Operation::And:
      return both(operation, left, right);
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
      return reckon(operation, left, right);
  }
}

}  // namespace tacho::report
