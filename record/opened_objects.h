// The BPF objects of a recording, opened: with their settings, and with the functions that they follow.
#pragma once

#include <vector>

#include "format/result.h"
#include "record/events/event_request.h"
#include "record/messages.h"
#include "record/prepared.h"

namespace tacho::record {

// Those among `requests`, in their order, into `out`; what captures need to show their samples, and what the
// COMMAND needs in its environment.
Result<> open_objects(const std::vector<EventRequest>& requests, const Messages& messages, Prepared& out);

}  // namespace tacho::record
