// How far a long reading is: one line on standard error, shown after a second and only to a person.
#pragma once

#include <chrono>
#include <cstdint>

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
  // So many bytes are read; `total` 0: nobody knows of how many.
  void at(std::uint64_t bytes, std::uint64_t total);
  // Erases the line; nothing is shown any more.
  void stop();

 private:
  int fd_;
  bool is_on_, is_shown_ = false;
  Clock::time_point next_;
};

}  // namespace tacho::report
