#include "format/base/printable.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace tacho::format {
namespace {

struct Range {
  std::uint32_t first, last;
};

// Valid UTF-8 that must not reach a terminal: C1 controls, invisible characters, marks of the direction of
// writing, and line separators. The two joiners, 200c and 200d, are safe inside a word (joins_letters()).
constexpr Range kUnsafe[] = {
    {0x80, 0x9f},     {0x61c, 0x61c},   {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x2069}, {0xfeff, 0xfeff}, {0xe0000, 0xe007f},
};

struct Character {
  std::size_t size = 1;  // bytes
  bool is_safe = false;
  std::uint32_t value = 0;  // 0: not valid UTF-8
};

// The character that starts at `at`, whose first byte is 0x80 or more.
Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t index) { return static_cast<std::uint8_t>(text[index]); };
  const std::uint8_t lead = byte(at);
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || at + size > text.size()) return {};
  std::uint32_t value = lead & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return {};
    value = value << 6 | (byte(at + i) & 0x3fU);
  }
  const bool is_overlong = (size == 3 && value < 0x800) || (size == 4 && value < 0x10000);
  if (is_overlong || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return {};
  const bool is_unsafe = std::ranges::any_of(
      kUnsafe, [&](const Range& range) { return value >= range.first && value <= range.last; });
  return {size, !is_unsafe, value};
}

// Whether the character at `at` is a joiner between two characters of scripts in which joiners have a
// meaning: emoji, Arabic, Indic scripts. Their code points are above those of Latin, Greek and Cyrillic, in
// which a joiner would be invisible and make different names look equal. `before`: the character in front of
// it; 0: none, or unsafe.
bool joins_letters(const Character& joiner, std::uint32_t before, std::string_view text, std::size_t at) {
  constexpr std::uint32_t kNonJoiner = 0x200c, kJoiner = 0x200d, kFirstLetter = 0x590;
  if (joiner.value != kNonJoiner && joiner.value != kJoiner) return false;
  const std::size_t end = at + joiner.size;
  if (before < kFirstLetter || end >= text.size() || static_cast<std::uint8_t>(text[end]) < 0x80)
    return false;
  const Character after = character_at(text, end);
  return after.is_safe && after.value >= kFirstLetter;
}

void append_escaped(std::string& out, std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
  }
}

std::string with_marks(std::string_view text, std::string_view marks) {
  if (is_plain(text) && text.find_first_of(marks) == std::string_view::npos) return std::string(text);
  std::string marked;
  for (const char c : text) {
    if (marks.find(c) != std::string_view::npos) marked += '\\';
    marked += c;
  }
  return printable(marked);
}

bool is_decimal(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

// No early exit, so that the compiler vectorizes the loop.
bool is_plain(std::string_view name) {
  unsigned unsafe = 0;
  for (const char c : name)
    unsafe |= static_cast<unsigned>(static_cast<std::uint8_t>(c - 0x20) >= 0x7f - 0x20);
  return unsafe == 0;
}

std::string printable(std::string_view name, Names names) {
  if (names == Names::Raw || is_plain(name)) return std::string(name);
  std::string safe;
  std::uint32_t before = 0;  // the character in front; 0: none, or unsafe
  for (std::size_t at = 0; at < name.size();) {
    const auto byte = static_cast<std::uint8_t>(name[at]);
    const Character next =
        byte < 0x80 ? Character{1, byte >= 0x20 && byte != 0x7f, byte} : character_at(name, at);
    const std::string_view bytes = name.substr(at, next.size);
    if (next.is_safe || joins_letters(next, before, name, at)) {
      safe += bytes;
    } else {
      append_escaped(safe, bytes);
    }
    before = next.is_safe ? next.value : 0;
    at += next.size;
  }
  return safe;
}

std::string printable_lines(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const std::size_t size = std::min(text.find_first_of("\n\t"), text.size());
    safe += printable(text.substr(0, size));
    safe += text.substr(size, 1);
    text.remove_prefix(std::min(size + 1, text.size()));
  }
  return safe;
}

std::string printable_folded(std::string_view name, Names names) {
  std::string safe = printable(name, names);
  if (names == Names::Raw) return safe;
  std::ranges::replace(safe, ';', ':');
  return safe;
}

std::string printable_leaf(std::string_view folded) {
  std::string safe(folded);
  const auto blank = safe.rfind(' ');
  if (blank != std::string::npos && is_decimal(folded.substr(blank + 1))) safe.replace(blank, 1, "\\x20");
  return safe;
}

std::string printable_quoted(std::string_view name) { return with_marks(name, "\\\""); }

std::string printable_json(std::string_view name) { return with_marks(name, "\\"); }

std::string printable_csv(std::string_view name, Names names) {
  std::string cell = printable(name, names);
  constexpr std::string_view kFormula = "=+-@\t\r";  // OWASP, "CSV Injection"
  const bool is_formula = !cell.empty() && kFormula.find(cell.front()) != std::string_view::npos;
  if (is_formula && !is_decimal(cell)) cell.insert(0, 1, '\'');
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char letter : cell) quoted.append(letter == '"' ? 2 : 1, letter);
  return quoted + '"';
}

}  // namespace tacho::format
