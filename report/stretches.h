// Stretches of time of equal length, one after another, for views that show each by itself (--interval).
#pragma once

#include <chrono>
#include <cstdint>

#include "cli/options.h"

namespace tacho::report {

// The row for --interval: seconds, or a number with ns, us, ms or s. `help` says what each stretch has. Sets
// nanoseconds; `length` must outlive the parsing.
cli::Option interval_option(std::string help, std::uint64_t& length);

// The first stretch begins with the first sample; stretches without samples are left out.
class Stretches {
 public:
  // `length`: nanoseconds; 0: everything is one stretch.
  explicit Stretches(std::uint64_t length) : length_(length) {}

  bool are_asked_for() const { return length_ != 0; }
  // Seconds, of the present one's begin.
  double begin() const { return static_cast<double>(begin_) / 1e9; }

  // A sample of this time (ns) comes: calls `write` for what came before, where that is another stretch.
  template <class Write>
  void move_to(std::uint64_t time, Write&& write) {
    if (length_ == 0) return;
    if (!is_begun_) {
      begin_ = time;
      is_begun_ = true;
      begun_ = Clock::now();
    }
    if (time < begin_ || time - begin_ < length_) return;
    write();
    begin_ += (time - begin_) / length_ * length_;
    begun_ = Clock::now();
  }

  // While a capture grows: a stretch that is over by the clock on the wall is not held back until a later
  // sample comes. To be called where the stretch has samples.
  template <class Write>
  void move_by_clock(Write&& write) {
    const auto now = Clock::now();
    if (length_ == 0 || !is_begun_ || now - begun_ < std::chrono::nanoseconds(length_)) return;
    write();
    begin_ += length_;
    begun_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::uint64_t length_;
  std::uint64_t begin_ = 0;  // ns
  Clock::time_point begun_;  // when that was, here
  bool is_begun_ = false;
};

}  // namespace tacho::report
