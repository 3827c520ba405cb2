// TimeStrip: a histogram of samples over time, along the width of the screen, to select a time range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/views/tui/frame.h"

namespace tacho::report {

// Numbers of samples in up to a few thousand intervals of equal width, which doubles as the capture gets
// longer.
class TimeCounts {
 public:
  void add_time(std::uint64_t time);  // ns
  bool empty() const { return counts_.empty(); }
  // The range of the counts in ns; the end is past the last interval.
  std::uint64_t begin() const { return begin_; }
  std::uint64_t end() const { return begin_ + counts_.size() * width_; }
  // The counts, added up in this many columns.
  std::vector<std::uint64_t> columns(std::size_t count) const;

 private:
  void join_pairs();

  static constexpr std::size_t kMost = 8192;
  std::uint64_t begin_ = 0;          // a multiple of width_
  std::uint64_t width_ = 1'000'000;  // ns
  std::vector<std::uint64_t> counts_;
};

// "123.456", of nanoseconds.
std::string short_seconds(std::uint64_t time);

class TimeStrip {
 public:
  // Lines of the screen: title, bars, times.
  static constexpr std::size_t kRows = 6;

  // Cursor and selection, kept over readings of the capture.
  struct State {
    std::uint64_t cursor = 0;                                       // ns
    std::optional<std::uint64_t> mark;                              // the other end of the selection
    std::optional<std::pair<std::uint64_t, std::uint64_t>> chosen;  // first and last ns that the rows count
    bool is_open = false;
  };
  // `counts` must outlive it and not be empty.
  TimeStrip(const TimeCounts& counts, State state);

  // Chosen: count range() only. All: count all samples.
  enum class Flow : std::uint8_t { Stay, Leave, Chosen, All, Unknown };
  Flow on_key(const KeyPress& press);
  void draw(Frame& frame, std::size_t first);
  const State& state() const { return state_; }
  // The selection as a value of --time: "123.000000000,124.500000000".
  std::string range() const;

 private:
  std::size_t column_of(std::uint64_t time) const;
  std::uint64_t begin_of(std::size_t column) const;
  void move_to(std::size_t column);
  std::pair<std::uint64_t, std::uint64_t> selection() const;  // first and last ns

  const TimeCounts* counts_;
  State state_;
  std::size_t width_ = 1, first_ = 0;  // when last drawn
};

}  // namespace tacho::report
