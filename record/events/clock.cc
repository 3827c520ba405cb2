#include "record/events/clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <iterator>
#include <string>

namespace tacho::record {
namespace {

struct Clock {
  std::string_view name;
  int number;
};

// The first five are the kernel's names; the rest are perf's short forms.
constexpr Clock kClocks[] = {
    {"monotonic", CLOCK_MONOTONIC},
    {"monotonic_raw", CLOCK_MONOTONIC_RAW},
    {"boottime", CLOCK_BOOTTIME},
    {"realtime", CLOCK_REALTIME},
    {"tai", CLOCK_TAI},
    {"mono", CLOCK_MONOTONIC},
    {"raw", CLOCK_MONOTONIC_RAW},
    {"boot", CLOCK_BOOTTIME},
    {"real", CLOCK_REALTIME},
};

char lower(char letter) { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter; }

}  // namespace

Result<int> parse_clock(std::string_view text) {
  std::string name(text);
  std::ranges::transform(name, name.begin(), lower);
  if (name.starts_with("clock_")) name.erase(0, 6);
  int number = 0;
  const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (code != std::errc{} || end != name.data() + name.size()) {
    const auto row = std::ranges::find(kClocks, name, &Clock::name);
    if (row == std::end(kClocks)) {
      return use_error(fmt::format(
          "'{}' is no clock; known: monotonic, monotonic_raw, boottime, realtime, tai, or a number", text));
    }
    number = row->number;
  }
  timespec resolution{};
  if (number < 0 || clock_getres(number, &resolution) != 0)
    return use_error(fmt::format("this host has no clock {}", text));
  return number;
}

}  // namespace tacho::record
