// The text after -e as values, in perf's language. What sysfs says of PMUs is asked here; whether a
// tracepoint or a map exists is found out later.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "format/result.h"
#include "record/events/event_request.h"
#include "record/events/pmu.h"

namespace tacho::record {

// "cycles:u,{faults,cs}:S,sched:sched_switch,cpu/event=0x3c/,./prog.bpf.o/map:channel.event=evt/". An error
// names the letter where the text stops making sense.
Result<std::vector<EventRequest>> parse_events(std::string_view text, const Pmus& pmus = Pmus());

}  // namespace tacho::record
