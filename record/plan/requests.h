// Requests completed before planning: tracepoint globs resolved in tracefs, and :u added where the kernel's
// side is not permitted.
#pragma once

#include <cstddef>
#include <vector>

#include "format/base/result.h"
#include "format/extensions/tracing_data.h"
#include "record/events/event_request.h"
#include "record/options/options.h"

namespace tacho::record {

// `requests` with globs replaced by the matching tracepoints, and each with its number; their formats go
// into `tracing`.
Result<std::vector<EventRequest>> resolve_tracepoints(const std::vector<EventRequest>& requests,
                                                      format::TracingData& tracing);

// Kernel samples excluded for users without the right: events without a :u or :k modifier.

// Whether events without a :u or :k modifier may be recorded with exclude_kernel: no option names a
// privilege level, and processes are watched. With -a or -C it would not help: the kernel refuses whole
// CPUs all the same.
bool may_exclude_kernel(const RecordOptions& options);

// As perf does where kernel.perf_event_paranoid keeps a user out: events that name no side (:u, :k) count
// outside of the kernel, and their names say so ("cpu-clock:u"). Returns how many were changed.
std::size_t exclude_kernel(std::vector<EventRequest>& requests);

}  // namespace tacho::record
