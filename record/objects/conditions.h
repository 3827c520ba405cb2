// Conditions of --filter compiled to BPF, for every event but tracepoints, whose filters are the kernel's.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "bpf/attach/event_filter.h"
#include "bpf/user_object.h"
#include "format/base/result.h"
#include "record/events/event_request.h"
#include "record/kernel/kernel_events.h"
#include "record/messages.h"
#include "record/plan/plan.h"

namespace tacho::record {

// Gives the objects their conditions (the n-th request of kind BpfObject is `objects[n]`, not loaded yet)
// and leaves other events' conditions in EventRequest::condition. A use error where the kernel cannot
// decide it.
Result<> compile_conditions(std::vector<EventRequest>& requests, std::vector<bpf::UserObject>& objects);

// Attaches the conditions to open events; except events whose stacks a program of tacho walks, which check
// by themselves (record/stacks). `filters`, by event: the loaded ones, also used for events that are opened
// again.
using EventFilters = std::map<std::size_t, bpf::EventFilter>;
Result<> attach_conditions(const Plan& plan, std::span<const OpenEvent> events, EventFilters& filters);

}  // namespace tacho::record
