// Resolves probes of -e to events of the kernel's PMUs uprobe and kprobe.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/events/event_names.h"
#include "record/events/event_request.h"

namespace tacho::record {

// `requests` with every probe resolved: its type, config and offset, and its name for the kernel. A marker at
// several addresses becomes an event for each. Resolving names of arguments takes time: `stop` is polled and
// ends it.
Result<std::vector<EventRequest>> find_probes(std::vector<EventRequest> requests,
                                              const std::function<bool()>& stop = {},
                                              const Pmus& pmus = Pmus());

// Warnings about return probes in programs that they may break: an exception cannot unwind through a return
// address that the kernel replaced, and Go moves stacks. `requests`: as find_probes() returns them.
std::vector<std::string> warnings_of_return_probes(std::span<const EventRequest> requests);

}  // namespace tacho::record
