// The conditions of --filter that BPF programs decide in the kernel, for everything but tracepoints' samples.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "bpf/attach/event_filter.h"
#include "bpf/user_object.h"
#include "format/result.h"
#include "record/events/event_request.h"
#include "record/kernel/kernel_events.h"
#include "record/messages.h"
#include "record/plan/plan.h"

namespace tacho::record {

// Tells the objects theirs (the n-th request of kind BpfObject is `objects[n]`, not loaded yet) and leaves
// those of other events in EventRequest::condition. A use error where the kernel cannot be asked.
Result<> compile_conditions(std::vector<EventRequest>& requests, std::vector<bpf::UserObject>& objects);

// Has the open events ask them; but for those whose stacks are walked by us, which ask by themselves
// (record/stacks). `filters`, by event: those that were loaded, and will be for events that are opened again.
using EventFilters = std::map<std::size_t, bpf::EventFilter>;
Result<> attach_conditions(const Plan& plan, std::span<const OpenEvent> events, EventFilters& filters);

}  // namespace tacho::record
