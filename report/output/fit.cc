#include "report/output/fit.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace tacho::report {
namespace {

constexpr std::string_view kCut = "..";

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }  // of UTF-8

// The first `count` characters, or the last.
std::string_view begin_of(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  for (; at < text.size() && (count > 0 || continues_character(text[at])); ++at)
    if (!continues_character(text[at])) --count;
  return text.substr(0, at);
}
std::string_view end_of(std::string_view text, std::size_t count) {
  std::size_t at = text.size();
  while (at > 0 && count > 0)
    if (!continues_character(text[--at])) --count;
  return text.substr(at);
}

}  // namespace

std::size_t terminal_width() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 0 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

std::size_t shown_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\033') {
      at = std::min(text.find('m', at), text.size() - 1);
    } else if (!continues_character(text[at])) {
      ++width;
    }
  }
  return width;
}

std::string cut_in_the_middle(std::string_view text, std::size_t width) {
  if (shown_width(text) <= width) return std::string(text);
  if (width < kCut.size() + 3) return std::string(begin_of(text, width));
  const std::size_t kept = width - kCut.size();
  return std::string(begin_of(text, kept - kept / 2)).append(kCut).append(end_of(text, kept / 2));
}

void fit_columns(std::vector<std::size_t>& widths, const std::vector<bool>& are_names, std::size_t gap,
                 std::size_t room) {
  if (room == 0 || widths.empty()) return;
  std::size_t used = gap * (widths.size() - 1);
  for (const std::size_t width : widths) used += width;
  while (used > room) {
    std::size_t widest = widths.size(), second = kLeastNameWidth;
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (are_names[i] && widths[i] > kLeastNameWidth &&
          (widest == widths.size() || widths[i] > widths[widest]))
        widest = i;
    if (widest == widths.size()) return;
    for (std::size_t i = 0; i < widths.size(); ++i)
      if (are_names[i] && widths[i] < widths[widest]) second = std::max(second, widths[i]);
    // Reduce the widest column to the width of the second widest; columns of one width take turns.
    const std::size_t equal = static_cast<std::size_t>(std::ranges::count(widths, widths[widest]));
    const std::size_t by = equal > 1 ? 1 : std::min(used - room, widths[widest] - second);
    widths[widest] -= by;
    used -= by;
  }
}

}  // namespace tacho::report
