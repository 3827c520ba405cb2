// What -e says of a BPF object: values for its globals, and the names of its events.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bpf/user_object.h"
#include "format/cursor.h"
#include "format/result.h"
#include "record/events/event_request.h"
#include "record/kernel/kernel_events.h"
#include "record/messages.h"
#include "record/opened_recording.h"

namespace tacho::record {

// Values for the globals of an object, as its -e says them. An error points at the letter. `cgroup` of a
// recorder that tacho carries is a path, of which the object is told the number.
Result<> set_constants(bpf::UserObject& object, const EventRequest& request);

// The BPF objects of a recording, opened: with their settings, and with the functions that they follow.

// The object behind a request that names a recorder.
Result<format::Bytes> object_of(const EventRequest& request);

// Those among `requests`, in their order, into `out`; what captures need to show their samples, and what the
// COMMAND needs in its environment.
Result<> open_objects(const std::vector<EventRequest>& requests, const Messages& messages,
                      OpenedRecording& out);

// What open events are joined to: programs that feed them, conditions that they ask, stacks that are walked.

// The objects' programs write to those events that are theirs, or run on their samples.
Result<> connect_objects(OpenedRecording& recording, std::span<const OpenEvent> events);

// All that is to be recorded of a CPU that came on line: opened, joined to what the events of the other CPUs
// are, and enabled where those are. After an error nothing of it is.
Result<KernelEvents::Reopened> reopen_cpu(int cpu, OpenedRecording& recording, KernelEvents& events);

}  // namespace tacho::record
