// Units of sizes and times, on command lines ("64K", "10ms") and of fields.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tacho::format {

enum class Quantity : std::uint8_t { None, Time, Size };

struct Unit {
  std::string_view name;
  Quantity quantity = Quantity::None;
  std::uint64_t size = 0;  // ns, or bytes
};

// Null: unknown. Without `quantity`, "m" is minutes.
const Unit* find_unit(std::string_view name, std::optional<Quantity> quantity = {});

// "100", "64K", "1.5GiB": bytes.
std::optional<double> parse_bytes(std::string_view text);
// "10ms", "2h", "0.5": ns; a number without a unit is in `bare` ns.
std::optional<double> parse_time(std::string_view text, double bare);

}  // namespace tacho::format
