// BPF objects of a recording: opened with the settings of their -e, later connected to open events.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bpf/attach/pid_numbers.h"
#include "bpf/user_object.h"
#include "format/base/cursor.h"
#include "format/base/result.h"
#include "record/events/event_request.h"
#include "record/kernel/kernel_events.h"
#include "record/messages.h"
#include "record/opened_recording.h"

namespace tacho::record {

// Sets globals of an object from its -e. An error points at the column. The option `cgroup` of an embedded
// recorder is a path, which is replaced by the cgroup's id; pids and tids are replaced by the kernel's
// (`numbers`).
Result<> set_constants(bpf::UserObject& object, const EventRequest& request,
                       const std::optional<bpf::PidNumbers>& numbers);

// The embedded object of a recorder.
Result<format::Bytes> object_of(const EventRequest& request);

struct OpenedObjects {
  std::vector<bpf::UserObject> objects;
  std::vector<format::Attachment> attachments;  // for captures: types of recorded functions
  std::vector<std::string> environment;         // variables for the COMMAND
};
// Opens the BPF objects of `requests`, in their order, with their settings and the functions that they probe.
// `stop` is polled meanwhile.
Result<OpenedObjects> open_objects(const std::vector<EventRequest>& requests,
                                   const std::optional<bpf::PidNumbers>& numbers,
                                   const std::function<bool()>& stop, const Messages& messages);

// Gives the programs the recorder's pid and the COMMAND's (0: none), so that recorders leave out the
// recorder.
void set_own_pids(std::vector<bpf::UserObject>& objects, int command,
                  const std::optional<bpf::PidNumbers>& numbers);

// Connects open events to BPF programs: puts them into perf event arrays, attaches sample programs,
// conditions and the unwinder.
Result<> connect_objects(OpenedRecording& recording, std::span<const OpenEvent> events);

// Opens all events of a CPU that came online, connects them like those of other CPUs, and enables them if
// those are enabled. After an error none of them is open.
Result<KernelEvents::Reopened> reopen_cpu(int cpu, OpenedRecording& recording);

}  // namespace tacho::record
