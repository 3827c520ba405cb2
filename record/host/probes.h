// Resolves probes of -e to events of the kernel's PMUs uprobe and kprobe.
#pragma once

#include <functional>
#include <vector>

#include "format/base/result.h"
#include "record/events/event_names.h"
#include "record/events/event_request.h"

namespace tacho::record {

// `requests` with every probe found: its type, config and offset, and the name for the kernel. A marker at
// several addresses in its file becomes an event for each of them. Names of arguments take a moment to be
// found: `stop` is polled meanwhile and may end that.
Result<std::vector<EventRequest>> find_probes(std::vector<EventRequest> requests,
                                              const std::function<bool()>& stop = {},
                                              const Pmus& pmus = Pmus());

}  // namespace tacho::record
