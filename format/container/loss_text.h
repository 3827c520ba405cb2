// Messages about lost samples: of which events, on which CPUs, and when.
#pragma once

#include <span>
#include <string>

#include "format/container/environment.h"

namespace tacho::format {

// "sched:sched_switch 1200 (CPU 0: 900, CPU 1: 300); cpu-clock in web 3 (CPU 1)": most losses first, of at
// most four events, with at most eight CPUs each. Names are not made safe for printing.
std::string where_lost(std::span<const EventLoss> losses);

// "from 0.120 s to 2.400 s after the first sample". Empty: the times are unknown.
std::string when_lost(const RecordingLosses& losses);

// Both, with ", " between. Empty: nothing was lost.
std::string where_and_when_lost(const RecordingLosses& losses);

}  // namespace tacho::format
