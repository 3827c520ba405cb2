// Chooses the functions that recorders probe: by a file's symbol table (calls, alloc, func), or kernel
// functions by the type of an argument (follow).
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

// The functions to probe. For an object that names them (UserObject::wanted_functions()): in the file of its
// setting `lib`, and with `pid` only in that process. For func: those of its setting `name`. For other
// objects: those of the settings `binary` and `functions`, with a warning if the program throws exceptions,
// which return probes break. A usage error: there are none, or the returns of such a program cannot be
// probed.
Result<bpf::FunctionTargets> followed_functions(const EventRequest& request, const bpf::UserObject& object,
                                                const Messages& messages);

// Moves probes of user functions that begin with endbr64 to the next instruction, where a probe is faster;
// the cookie has the distance to the function's start. Call it last, since offsets are not functions' starts
// afterwards. Returns the number of moved probes.
std::size_t choose_cheap_places(bpf::FunctionTargets& targets);

// For an object with a preloaded library that reports calls (its constant tacho_preloads): sets its `lib`,
// and returns variables for the COMMAND's environment. Adds types like add_function_types().
Result<std::vector<std::string>> preloaded_calls(const EventRequest& request, bpf::UserObject& object,
                                                 const std::function<bool()>& stop,
                                                 std::vector<format::Attachment>& attachments,
                                                 const Messages& messages);

// Looks up parameter and return types, for an object with the constant tacho_wants_types: the cookies say
// which registers point to text, and the capture gets an attachment. Missing types are no error.
Result<> add_function_types(const bpf::UserObject& object, bpf::FunctionTargets& targets,
                            const std::function<bool()>& stop, std::vector<format::Attachment>& attachments,
                            const Messages& messages);

// -e follow: functions of the kernel that take a pointer to a struct, and members of it.

// Whether the object's `type` is a kernel struct to follow.
bool follows_objects(const bpf::UserObject& object);

// Whether calls in all threads are recorded, once `start` was called for the object in a recorded thread.
bool follows_objects_anywhere(const bpf::UserObject& object);

// Joins the members of "show=bi_iter.bi_sector,bi_opf", which the parser split at commas: names without a
// value that are not settings of the object are appended to the value of `show`.
EventRequest with_members_joined(EventRequest request, const bpf::UserObject& object);

// The functions for the object's settings `type`, `functions`, `start` and `stop`; passes the members in
// `show` to the object. Prints how many functions are followed and how many cannot be. A usage error: there
// are none.
Result<bpf::FunctionTargets> followed_objects(const EventRequest& request, bpf::UserObject& object,
                                              const Messages& messages);

}  // namespace tacho::record
