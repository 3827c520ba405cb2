// The kernel's perf clock, in which events without a clock id (-k) have their times.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format/base/result.h"

namespace tacho::record {

// One moment by two clocks.
struct PerfClockTime {
  std::uint64_t perf_ns = 0;  // the perf clock, which no system call reads
  std::uint64_t wall_ns = 0;  // CLOCK_REALTIME
};

// The present: the time of a COMM record that this thread makes, of some the one with the least time
// around it. The two are then some microseconds apart. An error: events or rings are refused.
Result<PerfClockTime> read_perf_clock(std::size_t page_size);

}  // namespace tacho::record
