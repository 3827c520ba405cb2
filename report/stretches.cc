#include "report/stretches.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

namespace tacho::report {
namespace {

constexpr double kShortest = 1e-6, kLongest = 1e9;  // s

std::optional<double> unit_of(std::string_view name) {
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
  for (const auto& [unit, seconds] : kUnits) {
    if (name == unit) return seconds;
  }
  return std::nullopt;
}

Result<std::uint64_t> parse_interval(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto unit = unit_of(text.substr(static_cast<std::size_t>(end - text.data())));
  const double seconds = number * unit.value_or(0);
  if (error != std::errc{} || !(seconds >= kShortest && seconds <= kLongest))
    return use_error("--interval: '" + std::string(text) +
                     "' is no time from 0.000001 up: seconds, or a number with ns, us, ms or s, as in 100ms");
  return static_cast<std::uint64_t>(std::llround(seconds * 1e9));
}

}  // namespace

cli::Option interval_option(std::string help, std::uint64_t& length) {
  return {"--interval", cli::Takes::Value, "TIME", std::move(help),
          [&length](std::string_view text) -> Result<> {
            const auto parsed = parse_interval(text);
            if (!parsed) return parsed.error();
            length = *parsed;
            return Done{};
          }};
}

}  // namespace tacho::report
