// When samples were taken: a histogram along the width of the screen, on which a time range is chosen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/views/tui/frame.h"

namespace tacho::report {

// Samples counted in a few thousand intervals of equal length, which grow with the capture.
class TimeCounts {
 public:
  void add(std::uint64_t time);  // ns
  bool empty() const { return counts_.empty(); }
  // What the counts stand for, ns; the end is behind the last interval.
  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return begin_ + counts_.size() * width_; }
  // The same in so many columns.
  std::vector<std::uint64_t> columns(std::size_t count) const;

 private:
  void join_pairs();

  static constexpr std::size_t kMost = 8192;
  std::uint64_t begin_ = 0;          // a multiple of width_
  std::uint64_t width_ = 1'000'000;  // ns
  std::vector<std::uint64_t> counts_;
};

class TimeStrip {
 public:
  // Rows of the screen: a line above, bars, and a line of times.
  static constexpr std::size_t kRows = 6;

  // What was chosen, to be kept when the capture was read again.
  struct State {
    std::uint64_t cursor = 0;                                       // ns
    std::optional<std::uint64_t> mark;                              // the other end of what is being chosen
    std::optional<std::pair<std::uint64_t, std::uint64_t>> chosen;  // first and last ns of what rows count
    bool is_open = false;
  };
  // `counts` must outlive it, and has some.
  TimeStrip(const TimeCounts& counts, State state);

  // Chosen: rows shall count range() only. All: everything.
  enum class Flow : std::uint8_t { Stay, Leave, Chosen, All, Unknown };
  Flow on_key(const KeyPress& press);
  void draw(Frame& frame, std::size_t first);
  const State& state() const { return state_; }
  // As --time takes it: "123.000000000,124.500000000".
  std::string range() const;

 private:
  std::size_t column_of(std::uint64_t time) const;
  std::uint64_t begin_of(std::size_t column) const;
  void move_to(std::size_t column);

  const TimeCounts* counts_;
  State state_;
  std::size_t width_ = 1, first_ = 0;  // of the last drawing
};

}  // namespace tacho::report
