// Probes that were asked for by name become events of the kernel's PMUs uprobe and kprobe: they live as long
// as their descriptors, so that nothing is left behind, however the recorder ends.
#pragma once

#include <vector>

#include "format/result.h"
#include "record/events/event_request.h"
#include "record/events/pmu.h"

namespace tacho::record {

// `requests` with every probe found: its type, config and offset, and the name that the kernel wants. A
// marker that stands at several places in its file becomes an event for each of them.
Result<std::vector<EventRequest>> find_probes(std::vector<EventRequest> requests, const Pmus& pmus = Pmus());

}  // namespace tacho::record
