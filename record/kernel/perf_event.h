// perf_event_open(2) and what its refusals mean.
#pragma once

#include <cstdint>
#include <string>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/event_attr.h"
#include "record/host/host.h"
#include "record/plan/plan.h"

namespace tacho::record {

// perf_event_open(2). `task` -1: any thread on the CPU, or any in the event's cgroup. `leader`: the
// descriptor of the event that leads its group; -1: none. The error carries the errno; explain_refusal()
// makes a message of it.
Result<format::Fd> open_event(const PlannedEvent& event, int task, int cpu, int leader = -1);

// A clock that samples both sides and starts disabled: opened to see what the kernel allows.
PlannedEvent trial_clock();
// Whether this process may sample itself, but not the kernel (kernel.perf_event_paranoid 2, as most
// distributions have it, without CAP_PERFMON). Asks the kernel: capabilities may be a container's own.
bool is_kept_out_of_kernel(const Host& host);

// Why the kernel refused, and what would help.
Error explain_refusal(const PlannedEvent& event, int cpu, int code, const Host& host);

// The number that samples of this event carry.
Result<std::uint64_t> id_of_event(const format::Fd& event);
// The number of events that found no space in the ring (read format LOST); 0 if the event was opened without
// it. `id` identifies the event in its group.
std::uint64_t lost_by_event(const format::Fd& event, const format::EventAttr& attr, std::uint64_t id);

// Sets the kernel's filter of a tracepoint.
Result<> set_filter(const format::Fd& event, const std::string& filter);
Result<> enable_event(const format::Fd& event);
Result<> disable_event(const format::Fd& event);
// Whether the kernel writes to the event's ring.
Result<> pause_event(const format::Fd& event, bool pause);
// Samples of `event` go to the ring of `ring_owner`.
Result<> share_ring(const format::Fd& event, const format::Fd& ring_owner);

}  // namespace tacho::record
