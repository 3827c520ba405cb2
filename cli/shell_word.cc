#include "cli/shell_word.h"

#include <algorithm>

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

std::string shell_word(std::string_view word) {
  const std::string front = word.size() > 1 && word.starts_with('-') ? "./" : "";
  if (word.empty()) return "''";
  if (std::ranges::all_of(word, is_bare)) return front + std::string(word);
  if (!std::ranges::all_of(word, is_shown)) return front + escaped(word);
  std::string text = front + '\'';
  for (const char letter : word) text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return text + '\'';
}

}  // namespace tacho::cli
