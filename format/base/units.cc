#include "format/base/units.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <system_error>

namespace tacho::format {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;  // ns
constexpr std::uint64_t kKilo = 1024;
constexpr Unit kUnits[] = {
    {"ns", Quantity::Time, 1},
    {"us", Quantity::Time, 1'000},
    {"ms", Quantity::Time, 1'000'000},
    {"s", Quantity::Time, kSecond},
    {"m", Quantity::Time, 60 * kSecond},
    {"h", Quantity::Time, 3600 * kSecond},
    {"d", Quantity::Time, 86400 * kSecond},
    {"B", Quantity::Size, 1},
    {"bytes", Quantity::Size, 1},
    {"sectors", Quantity::Size, 512},
    {"k", Quantity::Size, kKilo},
    {"K", Quantity::Size, kKilo},
    {"kB", Quantity::Size, kKilo},
    {"KB", Quantity::Size, kKilo},
    {"KiB", Quantity::Size, kKilo},
    {"m", Quantity::Size, kKilo* kKilo},
    {"M", Quantity::Size, kKilo* kKilo},
    {"MB", Quantity::Size, kKilo* kKilo},
    {"MiB", Quantity::Size, kKilo* kKilo},
    {"g", Quantity::Size, kKilo* kKilo* kKilo},
    {"G", Quantity::Size, kKilo* kKilo* kKilo},
    {"GB", Quantity::Size, kKilo* kKilo* kKilo},
    {"GiB", Quantity::Size, kKilo* kKilo* kKilo},
    {"T", Quantity::Size, kKilo* kKilo* kKilo* kKilo},
};

std::optional<double> parse(std::string_view text, Quantity quantity, double bare) {
  double number = 0;
  const auto [end, fault] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (fault != std::errc() || !std::isfinite(number)) return std::nullopt;
  const std::string_view name = text.substr(static_cast<std::size_t>(end - text.data()));
  if (name.empty()) return number * bare;
  const Unit* const unit = find_unit(name, quantity);
  return unit == nullptr ? std::nullopt : std::optional(number * static_cast<double>(unit->size));
}

}  // namespace

const Unit* find_unit(std::string_view name, std::optional<Quantity> quantity) {
  const auto* const unit = std::ranges::find_if(
      kUnits, [&](const Unit& one) { return one.name == name && (!quantity || one.quantity == *quantity); });
  return unit == std::end(kUnits) ? nullptr : unit;
}

std::optional<double> parse_bytes(std::string_view text) { return parse(text, Quantity::Size, 1); }
std::optional<double> parse_time(std::string_view text, double bare) {
  return parse(text, Quantity::Time, bare);
}

}  // namespace tacho::format
