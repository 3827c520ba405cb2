// Compiles --filter conditions to BPF, for all events but tracepoints (whose filters the kernel evaluates).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "bpf/attach/event_filter.h"
#include "bpf/attach/pid_numbers.h"
#include "bpf/user_object.h"
#include "format/base/result.h"
#include "record/events/event_request.h"
#include "record/kernel/kernel_events.h"
#include "record/plan/plan.h"

namespace tacho::record {

// Passes their conditions to the objects, before they are loaded (the n-th request of kind BpfObject is
// `objects[n]`); other conditions stay in EventRequest::condition. A use error: it cannot be evaluated in the
// kernel.
// `numbers`: of pids and tids in conditions, which programs compare with the kernel's.
Result<> compile_conditions(std::vector<EventRequest>& requests, std::vector<bpf::UserObject>& objects,
                            const std::optional<bpf::PidNumbers>& numbers);

// Attaches the conditions to open events, except to events whose stacks the unwinder walks: that checks the
// condition itself (record/stacks). `filters`: loaded programs by event, used again for reopened events.
using EventFilters = std::map<std::size_t, bpf::EventFilter>;
Result<> attach_conditions(const Plan& plan, std::span<const OpenEvent> events, EventFilters& filters);

}  // namespace tacho::record
