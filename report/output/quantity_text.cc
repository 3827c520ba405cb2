#include "report/output/quantity_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "format/base/printable.h"
#include "format/base/units.h"
#include "report/output/text_output.h"

namespace tacho::report {
namespace {

struct Scale {
  double size;
  std::string_view name;
};
constexpr Scale kTimes[] = {{1e9, " s"}, {1e6, " ms"}, {1e3, " us"}, {1, " ns"}};
constexpr Scale kSizes[] = {
    {1099511627776., " TiB"}, {1073741824, " GiB"}, {1048576, " MiB"}, {1024, " KiB"}, {1, " B"}};
constexpr Scale kNumbers[] = {{1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1, ""}};

// "6" if it is exactly that, else "6.00", "14.2", "380", "0.0123".
std::string three_digits(double number) {
  const double size = std::abs(number);
  if (number == std::floor(number) || size >= 99.95) return fmt::format("{:.0f}", number);
  return size >= 9.995    ? fmt::format("{:.1f}", number)
         : size >= 0.9995 ? fmt::format("{:.2f}", number)
                          : fmt::format("{:.3g}", number);
}

// A value that rounds to the next scale's first number is in that scale: 999.9 us is 1.00 ms.
std::string scaled_text(double value, std::span<const Scale> scales) {
  constexpr double kRounded = 0.9995;
  const auto scale = std::ranges::find_if(scales, [&](const Scale& one) {
    return std::abs(value) >= one.size * kRounded || &one == &scales.back();
  });
  return three_digits(value / scale->size).append(scale->name);
}

}  // namespace

std::string quantity_text(double value, std::string_view unit) {
  const double exact = unit.empty() ? 1e15 : 1e6;  // smaller whole numbers have all their digits
  if (unit == "%") return three_digits(value) + " %";
  const format::Unit* const known = format::find_unit(unit);
  if (known != nullptr)
    return scaled_text(value * static_cast<double>(known->size), known->quantity == format::Quantity::Time
                                                                     ? std::span<const Scale>(kTimes)
                                                                     : std::span<const Scale>(kSizes));
  const bool is_exact = value == std::floor(value) && std::abs(value) < exact;
  const std::string number = is_exact ? with_commas(value) : scaled_text(value, kNumbers);
  if (unit == "samples" && value == 1) return "1 sample";
  return unit.empty() ? number : number + " " + format::printable(unit);
}

std::string p_text(double p) { return p < 0.0005 ? "p <0.001" : fmt::format("p {:.3f}", p); }

std::string change_text(double value, std::string_view unit) {
  return (value >= 0 ? "+" : "") + quantity_text(value, unit);
}

}  // namespace tacho::report
