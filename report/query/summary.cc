#include "report/query/summary.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <string_view>

namespace tacho::report {

namespace {

using Kind = ExpressionValue::Kind;

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

void Summary::add(const ExpressionValue& value, std::uint64_t times) {
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
