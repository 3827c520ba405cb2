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

// A disabled event that child processes of a thread do not inherit, threads of its process do (since
// Linux 5.13). Where a child has all events of its parent, the kernel switches between the two by swapping
// their event contexts: the time to the parent's next clock sample goes to the child and ends with it, so
// that a process that starts many short ones gets few samples, or none. Beside this event contexts are not
// swapped.
Result<format::Fd> open_uninherited_event(int task);

// A disabled cpu-clock event for kernel and user code, to test what the kernel allows.
PlannedEvent trial_clock();
// Whether this process may sample itself but not the kernel (kernel.perf_event_paranoid 2, the usual setting,
// and no CAP_PERFMON). Tested by opening events, since capabilities may belong to a user namespace.
bool is_kept_out_of_kernel(const Host& host);

// The message for an errno of open_event(): the reason, and what to do.
Error explain_refusal(const PlannedEvent& event, int cpu, int code, const Host& host);

// The id in the samples of this event.
Result<std::uint64_t> id_of_event(const format::Fd& event);
// What read() returns for an event. `id`: of the event in its group.
struct EventRead {
  std::uint64_t value = 0;
  std::uint64_t lost = 0;  // read format LOST; 0 if the event was opened without it
};
EventRead read_event(const format::Fd& event, const format::EventAttr& attr, std::uint64_t id);
// Its number of lost samples.
std::uint64_t lost_by_event(const format::Fd& event, const format::EventAttr& attr, std::uint64_t id);

// Sets the kernel's filter of a tracepoint.
Result<> set_filter(const format::Fd& event, const std::string& filter);
Result<> enable_event(const format::Fd& event);
Result<> disable_event(const format::Fd& event);
// Pauses or resumes the kernel's writing to the event's ring.
Result<> pause_event(const format::Fd& event, bool pause);
// Samples of `event` go to the ring of `ring_owner`.
Result<> share_ring(const format::Fd& event, const format::Fd& ring_owner);

}  // namespace tacho::record
