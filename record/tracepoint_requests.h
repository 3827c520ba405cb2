// Tracepoints that were asked for, found in tracefs.
#pragma once

#include <vector>

#include "format/result.h"
#include "format/tracing_data.h"
#include "record/events/event_request.h"

namespace tacho::record {

// `requests` with globs replaced by the tracepoints they stand for, and each with its number; their
// descriptions go into `tracing`.
Result<std::vector<EventRequest>> resolve_tracepoints(const std::vector<EventRequest>& requests,
                                                      format::TracingData& tracing);

}  // namespace tacho::record
