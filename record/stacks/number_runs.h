// Numbers 0, 1, 2, ... given out in runs, like rooms side by side. What is given back is given out again only
// after a while, so that whoever still reads there ends first.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

namespace tacho::record {

class NumberRuns {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kRest{500};

  explicit NumberRuns(std::uint32_t count) { grow(count); }

  // The first of `count` numbers in a row; nothing when there is no such run.
  std::optional<std::uint32_t> take(std::uint32_t count, Clock::time_point now);
  void give_back(std::uint32_t first, std::uint32_t count, Clock::time_point now);
  // Whether there is such a run, and so many numbers anywhere, once all that rests has rested.
  bool will_have(std::uint32_t count, std::uint32_t anywhere = 0) const;
  // More numbers behind the last one.
  void grow(std::uint32_t more);

  std::uint32_t size() const { return size_; }
  std::uint32_t taken() const { return taken_; }  // the resting ones included

 private:
  struct Resting {
    Clock::time_point since;
    std::uint32_t first, count;
  };
  std::uint32_t free_later() const;
  void wake(Clock::time_point now);
  void add_free(std::uint32_t first, std::uint32_t count);

  std::map<std::uint32_t, std::uint32_t> free_;  // first to count; no two touch
  std::deque<Resting> resting_;                  // oldest first
  std::uint32_t size_ = 0, taken_ = 0;
};

}  // namespace tacho::record
