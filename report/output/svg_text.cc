#include "report/output/svg_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace tacho::report {

std::string xml_text(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<std::uint8_t>(c);
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else if ((byte < 0x20 && c != '\t' && c != '\n') || byte == 0x7f) {
      escaped += fmt::format("\\x{:02x}", byte);
    } else if (text.substr(i).starts_with("\xef\xbf\xbe") || text.substr(i).starts_with("\xef\xbf\xbf")) {
      escaped += fmt::format("\\xef\\xbf\\x{:02x}", static_cast<std::uint8_t>(text[i + 2]));
      i += 2;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

namespace {

constexpr double kOfTwoBytes = 10, kOfMore = 13;  // px, of letters of UTF-8; wider than nearly all of them
constexpr double kEllipsis = kOfMore, kBesides = 6;
// Of ' ' to '~' in DejaVu Sans at 12 px, in tenths of a px.
constexpr std::array<std::uint8_t, 95> kLetterWidths = {
    38, 48, 55, 101, 76,  114, 94,  33,  47,  47, 60, 101, 38, 43, 38,  40, 76, 76, 76, 76, 76, 76,  76, 76,
    76, 76, 40, 40,  101, 101, 101, 64,  120, 82, 82, 84,  92, 76, 69,  93, 90, 35, 35, 79, 67, 104, 90, 94,
    72, 94, 83, 76,  73,  88,  82,  119, 82,  73, 82, 47,  40, 47, 101, 60, 60, 74, 76, 66, 76, 74,  42, 76,
    76, 33, 33, 69,  33,  117, 76,  73,  76,  76, 49, 63,  47, 76, 71,  98, 71, 71, 63, 76, 40, 76,  101};

bool begins_letter(char byte) { return (static_cast<std::uint8_t>(byte) & 0xc0) != 0x80; }

// Of the letter of UTF-8 at `at`.
std::size_t letter_size(std::string_view text, std::size_t at) {
  std::size_t size = 1;
  while (at + size < text.size() && !begins_letter(text[at + size])) ++size;
  return size;
}

double letter_width(std::string_view letter) {
  if (letter.size() > 1) return letter.size() > 2 ? kOfMore : kOfTwoBytes;
  const auto number = static_cast<std::size_t>(static_cast<std::uint8_t>(letter[0])) - ' ';
  return number < kLetterWidths.size() ? kLetterWidths[number] / 10.0 : kOfTwoBytes;
}

// The bytes of the first letters that take at most `room` px.
std::size_t bytes_within(std::string_view text, double room) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t size = letter_size(text, at);
    room -= letter_width(text.substr(at, size));
    if (room < 0) break;
    at += size;
  }
  return at;
}
// The same of the last letters.
std::size_t last_bytes_within(std::string_view text, double room) {
  std::size_t end = text.size();
  while (end > 0) {
    std::size_t begin = end - 1;
    while (begin > 0 && !begins_letter(text[begin])) --begin;
    room -= letter_width(text.substr(begin, end - begin));
    if (room < 0) break;
    end = begin;
  }
  return text.size() - end;
}
double width_of(std::string_view text) {
  double width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = letter_size(text, at);
    width += letter_width(text.substr(at, size));
    at += size;
  }
  return width;
}

}  // namespace

std::string fitting_text(std::string_view text, double width) {
  const double room = width - kBesides;
  if (bytes_within(text, room) == text.size()) return std::string(text);
  const std::string_view kept = text.substr(0, bytes_within(text, room - kEllipsis));
  if (std::ranges::count_if(kept, begins_letter) < 2) return {};
  return std::string(kept) + "…";
}

std::string without_template_arguments(std::string_view name) {
  constexpr std::string_view kOperator = "operator";
  std::string shown;
  std::size_t depth = 0, from = 0;
  for (std::size_t i = 1; i < name.size(); ++i) {
    const char before = name[i - 1];
    const bool is_name = std::isalnum(static_cast<std::uint8_t>(before)) != 0 || before == '_';
    if (name[i] == '<' && (depth > 0 || (is_name && !name.substr(0, i).ends_with(kOperator)))) {
      if (depth++ == 0) shown.append(name.substr(from, i - from)).append("<...>");
    } else if (name[i] == '>' && depth > 0 && before != '-' && --depth == 0) {
      from = i + 1;
    }
  }
  return depth > 0 ? std::string(name) : shown.append(name.substr(from));
}

std::string fitting_name(std::string_view name, double width) {
  constexpr double kLeastForParts = 62;  // px
  const double room = width - kBesides;
  if (bytes_within(name, room) == name.size()) return std::string(name);
  std::string shorter = without_template_arguments(name);
  if (room < kLeastForParts || bytes_within(shorter, room) == shorter.size())
    return fitting_text(shorter, width);
  for (std::size_t at = 0; (at = shorter.find("<...>", at)) != std::string::npos;) shorter.erase(at + 1, 3);
  const std::size_t end = last_bytes_within(shorter, (room - kEllipsis) / 3);
  const std::string_view last = std::string_view(shorter).substr(shorter.size() - end);
  return fitting_text(shorter, width - width_of(last)).append(last);  // that of the beginning ends in "…"
}

}  // namespace tacho::report
