// A progress line on standard error, shown after a second and only on a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tacho::report {

class Progress {
 public:
  using Clock = std::chrono::steady_clock;
  // Shows nothing when `fd` is no terminal.
  explicit Progress(int fd, Clock::duration delay = std::chrono::seconds(1));
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { stop(); }

  bool is_on() const { return is_on_; }
  // `bytes` of `total` are read; `total` 0: unknown.
  void at(std::uint64_t bytes, std::uint64_t total);
  // Another text: `line` is called when it is time to show it.
  void show(const std::function<std::string()>& line);
  // Erases the line; a later one may be shown.
  void erase();
  // Erases the line and shows nothing any more.
  void stop();

 private:
  int fd_;
  bool is_on_, is_shown_ = false;
  Clock::time_point next_;
};

// Shows the progress lines of a sandboxed child in its parent; an empty line erases.
std::function<void(std::string_view)> progress_lines();

}  // namespace tacho::report
