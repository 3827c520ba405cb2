#include "report/output/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace tacho::report {
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
