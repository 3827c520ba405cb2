#include "report/query/counted.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <string_view>

namespace tacho::report {
namespace {

constexpr std::string_view kLog2 = "log2", kLinear = "linear:";

const PayloadField* tagged(const PayloadSchema& schema, std::string_view role) {
  const auto field = std::ranges::find(schema.fields, role, &PayloadField::role);
  return field == schema.fields.end() || is_list(*field) ? nullptr : &*field;
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
  return {tagged(schema, "count"), tagged(schema, "sum")};
}

bool is_total(const PayloadSchema& schema, const PayloadField& field) {
  const bool is_of_each =
      field.role == "key" || field.role.starts_with("table:") || field.role == "value" || has_slots(field);
  return counted_fields(schema).count != nullptr && !is_of_each;
}

std::uint64_t count_of(const PayloadField* count, const ResolvedSample& sample) {
  if (count == nullptr) return 1;
  const auto number = read_number(*count, sample.raw->raw, sample.order);
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

Slot slot_of(const PayloadField& field, std::int64_t number) {
  if (!has_slots(field)) return {number, number};
  if (field.format == kLog2) {
    const auto low = std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(number, 0)));
    if (low <= 1) return {0, 1};
    return {static_cast<std::int64_t>(low), static_cast<std::int64_t>(2 * low - 1)};
  }
  const auto step = static_cast<std::int64_t>(std::min(step_of(field), std::uint64_t{1} << 62));
  const std::int64_t low = number / step * step;
  return {low, low + (step - 1)};
}

void add_values(Summary& to, const ValueOfMany& how, const ExpressionValue& value, std::uint64_t count,
                const ResolvedSample& sample) {
  if (how.is_total) return to.add(value, 1);
  if (how.sum == nullptr && how.slots == nullptr) return to.add(value, count);
  const ExpressionValue high = how.slots != nullptr ? highest_in_slot(*how.slots, value) : value;
  if (!how.is_sum) to.spread(value, high, count);
  if (how.sum == nullptr)
    return to.add_total(apply(cli::Operation::Times, value, ExpressionValue::of(count)), count);
  if (const auto sum = read_number(*how.sum, sample.raw->raw, sample.order))
    to.add_total(ExpressionValue::of(*sum), count);
}

}  // namespace tacho::report
