// Numbers at the start of a text: lists of processors and processes, ranges of bits.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace tacho::record {

// A decimal number at the start of `text`, which is shortened by it. Nothing, and `text` as it was, when
// there is none or none that an int holds.
inline std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace tacho::record
