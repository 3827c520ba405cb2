// Parsing of short texts: lists, numbers, and files of /proc.
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace tacho::format {

// Removes the part of `text` before the first `end`, and that `end`; returns the part. Without `end` it is
// the whole text.
inline std::string_view take_until(std::string_view& text, char end) {
  const std::string_view part = text.substr(0, text.find(end));
  text.remove_prefix(std::min(part.size() + 1, text.size()));
  return part;
}

// Removes `prefix` from the start of `text`; false: the text starts otherwise.
inline bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Removes a number without a sign from the start of `text`. nullopt, with `text` unchanged: there is none, or
// it does not fit.
template <std::integral Number>
std::optional<Number> take_number(std::string_view& text, int base = 10) {
  Number value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (code != std::errc{} || text.front() == '-') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// The number that the whole of `text` is.
template <std::integral Number>
std::optional<Number> whole_number(std::string_view text, int base = 10) {
  Number value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return code == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// The number at the start of `text`; 0: there is none.
template <std::integral Number>
Number number_at(std::string_view text, int base = 10) {
  return take_number<Number>(text, base).value_or(Number{});
}

// The value of a field in a text such as /proc/PID/status ("\nTgid:\t812\n"); empty: there is no such field.
inline std::string_view field_of_status(std::string_view status, std::string_view name) {
  for (auto at = status.find(name); at != std::string_view::npos; at = status.find(name, at + 1)) {
    std::string_view rest = status.substr(at + name.size());
    if (at != 0 && status[at - 1] == '\n' && take_prefix(rest, ":\t")) return take_until(rest, '\n');
  }
  return {};
}

// A path as /proc/PID/mountinfo has it: the kernel writes blanks, tabs, newlines and backslashes as \040.
inline std::string without_octal_escapes(std::string_view text) {
  constexpr std::size_t kDigits = 3;
  std::string plain;
  while (!text.empty()) {
    const std::string_view digits = text.substr(1, kDigits);
    const auto code =
        text.front() == '\\' && digits.size() == kDigits ? whole_number<unsigned>(digits, 8) : std::nullopt;
    plain += code ? static_cast<char>(*code) : text.front();
    text.remove_prefix(code ? 1 + kDigits : 1);
  }
  return plain;
}

}  // namespace tacho::format
