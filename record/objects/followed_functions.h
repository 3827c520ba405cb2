// Functions that recorders probe: of a file's symbol table (calls, alloc, func), or of the kernel by a
// struct that they take (follow).
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "bpf/attach/function_probes.h"
#include "bpf/user_object.h"
#include "format/base/result.h"
#include "format/extensions/attachment.h"
#include "record/events/event_request.h"
#include "record/messages.h"

namespace tacho::record {

// The functions for an object that names them (UserObject::wanted_functions()): in the file of its setting
// `lib`, and with its `pid` in that process only. For func: those of its `name`. For other objects: those of
// the settings `binary` and `functions`, with a warning for a program that throws exceptions, which return
// probes break. A usage error: there are none, or the program is of a kind whose returns cannot be probed.
Result<bpf::FunctionTargets> followed_functions(const EventRequest& request, const bpf::UserObject& object,
                                                const Messages& messages);

// Moves probes of user functions that begin with endbr64 to the instruction after it, where probing costs
// less; the cookie carries the distance to the function's start. Call it last, because offsets are then no
// longer functions' starts. Returns the number of moved probes.
std::size_t choose_cheap_places(bpf::FunctionTargets& targets);

// For an object whose calls a preloaded library reports (its constant tacho_preloads): sets its `lib`, and
// returns variables for the COMMAND's environment. Types are added as by add_function_types().
Result<std::vector<std::string>> preloaded_calls(const EventRequest& request, bpf::UserObject& object,
                                                 const std::function<bool()>& stop,
                                                 std::vector<format::Attachment>& attachments,
                                                 const Messages& messages);

// Looks up parameter and return types, for an object that wants them (its constant tacho_wants_types): its
// programs find in their cookie which registers point to text, and the capture gets an attachment. Missing
// types are no error.
Result<> add_function_types(const bpf::UserObject& object, bpf::FunctionTargets& targets,
                            const std::function<bool()>& stop, std::vector<format::Attachment>& attachments,
                            const Messages& messages);

// -e follow: functions of the kernel that take a pointer to a struct, and members of it.

// Whether the object's `type` is a kernel struct to follow.
bool follows_objects(const bpf::UserObject& object);

// Whether their calls are wanted in every thread once a chosen thread's `start` got them.
bool follows_objects_anywhere(const bpf::UserObject& object);

// "show=bi_iter.bi_sector,bi_opf" is one setting: names without a value that are not settings of the object
// are appended to its value, which may be unquoted.
EventRequest with_members_joined(EventRequest request, const bpf::UserObject& object);

// The functions for the object's settings `type`, `functions`, `start` and `stop`; passes the members in
// `show` to the object. Prints the number of functions, and how many cannot be probed. A usage error: there
// are none.
Result<bpf::FunctionTargets> followed_objects(const EventRequest& request, bpf::UserObject& object,
                                              const Messages& messages);

}  // namespace tacho::record
