#include "cli/message_text.h"

#include <algorithm>
#include <utility>

#include "format/base/printable.h"

namespace tacho::cli {
namespace {

bool is_bare(char letter) {
  constexpr std::string_view kAlsoBare = "_./+=:@%,-^";
  return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') ||
         (letter >= 'A' && letter <= 'Z') || kAlsoBare.find(letter) != std::string_view::npos;
}

bool is_shown(char letter) { return letter >= ' ' && letter <= '~'; }

std::string escaped(std::string_view word) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "$'";
  for (const char letter : word) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '\'' || letter == '\\') text += '\\';
    if (is_shown(letter)) {
      text += letter;
    } else {
      text += "\\x";
      text += kDigits[byte >> 4];
      text += kDigits[byte & 15];
    }
  }
  return text + '\'';
}

}  // namespace

Error error_at(std::string_view option, std::string_view text, std::size_t at, std::string_view what) {
  constexpr std::size_t kWidest = 100;  // columns that a terminal shows in one line, with room to spare
  at = std::min(at, text.size());
  std::string message = std::string(option) + ": column " + std::to_string(at + 1);
  if (text.size() > kWidest || !format::is_plain(text))
    return use_error(message + ", '" + std::string(text.substr(at)) + "': " + std::string(what));
  message += ": " + std::string(what) + "\n    " + std::string(text) + "\n    " + std::string(at, ' ') + "^";
  return use_error(std::move(message));
}

std::string printable_message(std::string_view text) {
  constexpr std::string_view kNextLine = "\n  ";
  std::string out;
  for (;;) {
    const std::size_t size = std::min(text.find(kNextLine), text.size());
    out += format::printable(text.substr(0, size));
    if (size == text.size()) return out;
    out += kNextLine;
    text.remove_prefix(size + kNextLine.size());
  }
}

std::string shell_word(std::string_view word) {
  if (word.empty()) return "''";
  const std::string front = word.size() > 1 && word.starts_with('-') ? "./" : "";
  if (std::ranges::all_of(word, is_bare)) return front + std::string(word);
  if (!std::ranges::all_of(word, is_shown)) return front + escaped(word);
  std::string text = front + '\'';
  for (const char letter : word) text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + '\'';
}

std::string noun_after(std::uint64_t number, std::string_view singular) {
  std::string noun(singular);
  if (number == 1) return noun;
  if (noun.ends_with('y')) return noun.replace(noun.size() - 1, 1, "ies");
  return noun + (noun.ends_with('s') ? "es" : "s");
}

std::string counted(std::uint64_t number, std::string_view singular) {
  return std::to_string(number) + ' ' + noun_after(number, singular);
}

}  // namespace tacho::cli
