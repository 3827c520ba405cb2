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

// `requests` with globs replaced by the matching tracepoints, and with tracepoint ids. The formats are added
// to `tracing`.
Result<std::vector<EventRequest>> resolve_tracepoints(const std::vector<EventRequest>& requests,
                                                      format::TracingData& tracing);

// Whether exclude_kernel() helps a user without the right to record the kernel: no option names a privilege
// level, and processes are watched. It does not help with -a or -C, as the kernel refuses system-wide events
// anyway.
bool may_exclude_kernel(const RecordOptions& options);

// As perf with a high kernel.perf_event_paranoid: events without :u or :k exclude the kernel, and their names
// get ":u" ("cpu-clock:u"). Returns the number of changed events.
std::size_t exclude_kernel(std::vector<EventRequest>& requests);

}  // namespace tacho::record
