// Probes that were asked for by name become events of the kernel's PMUs uprobe and kprobe: they live as long
// as their descriptors, so that nothing is left behind, however the recorder ends.
#pragma once

#include <functional>
#include <vector>

#include "format/result.h"
#include "record/events/event_names.h"
#include "record/events/event_request.h"

namespace tacho::record {

// `requests` with every probe found: its type, config and offset, and the name that the kernel wants. A
// marker that stands at several places in its file becomes an event for each of them. Names of arguments take
// a moment to be found: asked many times a second meanwhile, `stop` may end that.
Result<std::vector<EventRequest>> find_probes(std::vector<EventRequest> requests,
                                              const std::function<bool()>& stop = {},
                                              const Pmus& pmus = Pmus());

}  // namespace tacho::record
