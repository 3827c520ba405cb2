// What -e follow follows: functions of the kernel that take a pointer to a struct, and members of it.
#pragma once

#include "bpf/function_probes.h"
#include "bpf/user_object.h"
#include "format/result.h"
#include "record/events/event_request.h"
#include "record/messages.h"

namespace tacho::record {

// Whether that is what the object's `type` is for.
bool follows_objects(const bpf::UserObject& object);

// Whether their calls are wanted in every thread once a chosen thread's `start` got them.
bool follows_objects_anywhere(const bpf::UserObject& object);

// "show=bi_iter.bi_sector,bi_opf" is one setting: names without a value behind it that are none of the
// object's own go to its value, which may have no quotes.
EventRequest with_members_joined(EventRequest request, const bpf::UserObject& object);

// By the object's settings `type`, `functions`, `start` and `stop`; tells the object of the members in
// `show`. Says how many functions there are and how many of them cannot be probed. An error of the use.
Result<bpf::FunctionTargets> followed_objects(const EventRequest& request, bpf::UserObject& object,
                                              const Messages& messages);

}  // namespace tacho::record
