#include "report/output/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "cli/message_text.h"
#include "format/base/trusted_path.h"
#include "report/output/text_output.h"

namespace tacho::report {
namespace {

constexpr std::string_view kRed = "\033[31m", kGreen = "\033[32m", kPlain = "\033[m";
constexpr double kLeastRed = 5.0, kMostPlain = 0.5;  // percent
constexpr std::chrono::milliseconds kBetween(200);   // between updates of the progress line
constexpr std::string_view kErase = "\r\033[K";
constexpr double kMegabyte = 1e6;

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

// The command as the shell gets it. For root the program's name becomes its path, since the shell would run
// the first program of that name in PATH; an error if other users may change it. A command that does not
// begin with a plain name or path is left to the shell, which then searches trusted folders only
// (OutputFile).
Result<std::string> checked_pager(const std::string& command) {
  const std::string name = command.substr(0, command.find(' '));
  if (::geteuid() != 0 || name.find_first_of("$\"'`=;|&<>()\\*?[~") != std::string::npos) return command;
  if (name.find('/') != std::string::npos) {
    if (auto checked = format::check_program(name); !checked) return std::move(checked.error());
    return command;
  }
  auto found = format::find_program(name);
  if (found) return cli::shell_word(*found) + command.substr(name.size());
  return found.error().code == EPERM ? Result<std::string>(std::move(found.error())) : command;
}

void put(int fd, std::string_view text) {
  // Errors are ignored: a closed terminal must not fail the work.
  (void)!::write(fd, text.data(), text.size());
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
  if (!(percent > kMostPlain)) return std::string(text);
  return std::string(percent >= kLeastRed ? kRed : kGreen) + std::string(text) + std::string(kPlain);
}

std::string pager_command(const char* tacho_pager, const char* pager, bool has_less) {
  const char* const named = tacho_pager != nullptr ? tacho_pager : pager;
  const std::string_view command = named != nullptr ? named : has_less ? "less" : "";
  return std::string(command == "cat" ? std::string_view() : command);
}

OutputFile standard_output(Paging paging) {
  const bool is_dumb = variable("TERM") == "dumb";  // less would ask for a key
  if (paging == Paging::Never || is_dumb || ::isatty(STDOUT_FILENO) == 0) return OutputFile(STDOUT_FILENO);
  const auto less = format::find_program("less");
  const bool has_less = less || less.error().code == EPERM;
  const std::string command = pager_command(std::getenv("TACHO_PAGER"), std::getenv("PAGER"), has_less);
  if (command.empty()) return OutputFile(STDOUT_FILENO);
  auto checked = checked_pager(command);
  if (!checked) {
    std::fprintf(stderr, "tacho: no pager: %s\n", printable(checked.error().what).c_str());
    return OutputFile(STDOUT_FILENO);
  }
  return OutputFile::to_command(std::move(*checked));
}

Progress::Progress(ShowLine show_line, Clock::duration delay)
    : show_line_(std::move(show_line)), is_on_(show_line_ != nullptr), next_(Clock::now() + delay) {}

Progress::Progress(int fd, Clock::duration delay)
    : Progress(
          ::isatty(fd) == 0 ? ShowLine()
                            : [fd](std::string_view line) { put(fd, std::string(kErase).append(line)); },
          delay) {}

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
  show_line_(line());
  is_shown_ = true;
}

void Progress::erase() {
  if (std::exchange(is_shown_, false)) show_line_({});
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
