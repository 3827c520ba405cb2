// LiveLoad: how busy the CPUs are while a recording runs, from the samples of a clock: the head of tacho top,
// with a bar for each CPU and a strip of the last refreshes.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "format/records/event_attr.h"
#include "format/records/record_view.h"
#include "format/records/sample.h"
#include "report/views/tui/frame.h"

namespace tacho::report {

class LiveLoad {
 public:
  using Clock = std::chrono::steady_clock;

  // Any sample: those of a clock (cpu-clock, task-clock) that have a CPU count. Idle tasks (pid 0) count as
  // idle.
  void take_sample(const format::RecordView& view, const format::EventAttr& attr);
  // What was taken since the last refresh is what is shown.
  void refresh(Clock::time_point now);

  // Lines that the head needs on a screen; 0: no clock is recorded, or the screen is too low.
  std::uint16_t height(ScreenSize size) const;
  // A frame of that size: the head, and below it `body`, which has height() lines less.
  Frame with_head(Frame body, ScreenSize size) const;

 private:
  // Parts of a CPU's time, 0 to 1.
  struct Load {
    double user = 0, kernel = 0;
    double all() const { return user + kernel; }
  };
  struct Taken {
    std::uint64_t user = 0, kernel = 0;  // ns
  };
  void draw_bars(Frame& frame) const;
  void draw_strip(Frame& frame, std::size_t row) const;

  std::map<std::uint32_t, Taken> taken_;               // by CPU that had a sample
  std::vector<std::pair<std::uint32_t, Load>> shown_;  // of these CPUs
  Load total_;                                         // their mean
  std::deque<double> history_;
  Clock::time_point since_ = Clock::now();
  format::SampleParser parser_;
};

}  // namespace tacho::report
