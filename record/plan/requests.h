// Tracepoints that were asked for, found in tracefs.
#pragma once

#include <cstddef>
#include <vector>

#include "format/result.h"
#include "format/tracing_data.h"
#include "record/events/event_request.h"
#include "record/options/options.h"

namespace tacho::record {

// `requests` with globs replaced by the tracepoints they stand for, and each with its number; their
// descriptions go into `tracing`.
Result<std::vector<EventRequest>> resolve_tracepoints(const std::vector<EventRequest>& requests,
                                                      format::TracingData& tracing);

// Events of a user whom the kernel does not let look into it.

// Whether events that name no side may be recorded outside of the kernel alone: no option names a side, and
// processes are watched. With -a or -C it would not help: the kernel refuses whole CPUs all the same.
bool may_exclude_kernel(const RecordOptions& options);

// As perf does where kernel.perf_event_paranoid keeps a user out: events that name no side (:u, :k) count
// outside of the kernel, and their names say so ("cpu-clock:u"). Returns how many were changed.
std::size_t exclude_kernel(std::vector<EventRequest>& requests);

}  // namespace tacho::record
