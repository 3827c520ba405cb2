#include "report/output/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "format/base/trusted_path.h"
#include "report/output/text_output.h"

namespace tacho::report {
namespace {

constexpr std::string_view kRed = "\033[31m", kGreen = "\033[32m", kPlain = "\033[m";
constexpr double kLeastRed = 5.0, kMostPlain = 0.5;  // percent

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

}  // namespace

Result<Colour> parse_colour(std::string_view option, std::string_view text) {
  if (text == "auto") return Colour::Auto;
  if (text == "always") return Colour::Always;
  if (text == "never") return Colour::Never;
  return use_error(std::string(option) + ": '" + std::string(text) + "' is none of always, auto and never");
}

bool has_colour(Colour colour, bool is_for_person) {
  if (colour != Colour::Auto) return colour == Colour::Always;
  return is_for_person && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
}

std::string coloured_share(double percent, std::string_view text) {
  const std::string_view colour = percent >= kLeastRed   ? kRed
                                  : percent > kMostPlain ? kGreen
                                                         : std::string_view();
  if (colour.empty()) return std::string(text);
  return std::string(colour) + std::string(text) + std::string(kPlain);
}

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

namespace {

// The reason for not running a pager: root runs no program from PATH that other users may change. Anything
// that is no plain program name is left to the shell.
Result<> check_pager(const std::string& command) {
  const std::string name = command.substr(0, command.find(' '));
  if (::geteuid() != 0 || name.find_first_of("/$\"'`=;|&") != std::string::npos) return Done{};
  auto found = format::find_program(name);
  return found || found.error().code != EPERM ? Result<>(Done{}) : std::move(found.error());
}

}  // namespace

std::string pager_command(const char* tacho_pager, const char* pager, bool has_less) {
  const char* const named = tacho_pager != nullptr ? tacho_pager : pager;
  const std::string_view command = named != nullptr ? named : has_less ? "less" : "";
  return std::string(command == "cat" ? std::string_view() : command);
}

OutputFile standard_output(Paging paging) {
  const char* const terminal = std::getenv("TERM");
  const bool is_dumb =
      terminal != nullptr && std::string_view(terminal) == "dumb";  // less would ask for a key
  if (paging == Paging::Never || is_dumb || ::isatty(STDOUT_FILENO) == 0) return OutputFile(STDOUT_FILENO);
  const bool has_less = static_cast<bool>(format::find_program("less"));
  std::string command = pager_command(std::getenv("TACHO_PAGER"), std::getenv("PAGER"), has_less);
  if (command.empty()) return OutputFile(STDOUT_FILENO);
  if (const auto checked = check_pager(command); !checked) {
    std::fprintf(stderr, "tacho: no pager: %s\n", printable(checked.error().what).c_str());
    return OutputFile(STDOUT_FILENO);
  }
  return OutputFile::to_command(std::move(command));
}

namespace {

constexpr std::chrono::milliseconds kBetween(200);  // between updates of the line
constexpr std::string_view kErase = "\r\033[K";
constexpr double kMegabyte = 1e6;

void put(int fd, std::string_view text) {
  // Errors are ignored: a closed terminal must not fail the work.
  (void)!::write(fd, text.data(), text.size());
}

}  // namespace

Progress::Progress(int fd, Clock::duration delay)
    : fd_(fd), is_on_(::isatty(fd) != 0), next_(Clock::now() + delay) {}

void Progress::at(std::uint64_t bytes, std::uint64_t total) {
  show([=] {
    const double megabytes = static_cast<double>(bytes) / kMegabyte;
    std::string line = fmt::format("tacho: {:.1f} MB read", megabytes);
    if (total > 0) {
      const double share = static_cast<double>(std::min(bytes, total)) / static_cast<double>(total);
      line += fmt::format(", {:.0f}%", 100.0 * share);
    }
    return line;
  });
}

void Progress::show(const std::function<std::string()>& line) {
  if (!is_on_ || Clock::now() < next_) return;
  next_ = Clock::now() + kBetween;
  put(fd_, std::string(kErase) + line());
  is_shown_ = true;
}

void Progress::erase() {
  if (std::exchange(is_shown_, false)) put(fd_, kErase);
}

void Progress::stop() {
  erase();
  is_on_ = false;
}

std::function<void(std::string_view)> progress_lines() {
  const auto progress = std::make_shared<Progress>(STDERR_FILENO, Progress::Clock::duration::zero());
  return [progress](std::string_view line) {
    if (line.empty())
      progress->erase();
    else
      progress->show([line] { return std::string(line); });
  };
}

}  // namespace tacho::report
