// BPF objects of a recording: opened with the settings of their -e, later connected to open events.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bpf/user_object.h"
#include "format/base/cursor.h"
#include "format/base/result.h"
#include "record/events/event_request.h"
#include "record/kernel/kernel_events.h"
#include "record/messages.h"
#include "record/opened_recording.h"

namespace tacho::record {

// Sets globals of an object from its -e. An error points at the column. `cgroup` of an embedded recorder is
// a path, of which the object gets the number.
Result<> set_constants(bpf::UserObject& object, const EventRequest& request);

// The BPF objects of a recording, opened: with their settings, and with the functions that they follow.

// The object of a request that names a recorder.
Result<format::Bytes> object_of(const EventRequest& request);

struct OpenedObjects {
  std::vector<bpf::UserObject> objects;
  std::vector<format::Attachment> attachments;  // what captures need to show their samples
  std::vector<std::string> environment;         // variables for the COMMAND
};
// Opens the objects among `requests`, in their order. `stop` is polled meanwhile.
Result<OpenedObjects> open_objects(const std::vector<EventRequest>& requests,
                                   const std::function<bool()>& stop, const Messages& messages);

// Connects open events: programs that feed them, their conditions, and stacks that are walked.

// The objects' programs write to those events that are theirs, or run on their samples.
Result<> connect_objects(OpenedRecording& recording, std::span<const OpenEvent> events);

// Opens all events of a CPU that came online, connected like the other CPUs' events, and enabled where
// those are. After an error none of them is open.
Result<KernelEvents::Reopened> reopen_cpu(int cpu, OpenedRecording& recording);

}  // namespace tacho::record
