// How far a long reading is: one line on standard error, shown after a second and only to a person.
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
  // `fd`: nothing is shown when it is no terminal.
  explicit Progress(int fd, Clock::duration delay = std::chrono::seconds(1));
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { stop(); }

  bool is_on() const { return is_on_; }
  // So many bytes are read; `total` 0: of an unknown total.
  void at(std::uint64_t bytes, std::uint64_t total);
  // Another line, which is made when it is time to show it.
  void show(const std::function<std::string()>& line);
  // Erases the line, until there is another one.
  void erase();
  // For good: nothing is shown any more.
  void stop();

 private:
  int fd_;
  bool is_on_, is_shown_ = false;
  Clock::time_point next_;
};

// Shows lines as the parent of a sandboxed process gives them; an empty one erases.
std::function<void(std::string_view)> progress_lines();

}  // namespace tacho::report
