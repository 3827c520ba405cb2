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

// Of an object that names functions (UserObject::wanted_functions()): those in the file of its setting `lib`,
// and with its `pid` in that process alone. Of func: by its `name`. Of another one: by the settings `binary`
// and `functions`; warns of a program that throws exceptions, which probes on returns stop. An error of the
// use: there are none, or the program is of a kind whose returns cannot be probed.
Result<bpf::FunctionTargets> followed_functions(const EventRequest& request, const bpf::UserObject& object,
                                                const Messages& messages);

// Moves probes of user functions that start with endbr64 behind it, where probing costs less; the cookie
// has the program know that the function starts before. Last, as offsets are no longer functions' then.
// Returns how many were moved.
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

// What -e follow follows: functions of the kernel that take a pointer to a struct, and members of it.

// Whether the object's `type` is a kernel struct to follow.
bool follows_objects(const bpf::UserObject& object);

// Whether their calls are wanted in every thread once a chosen thread's `start` got them.
bool follows_objects_anywhere(const bpf::UserObject& object);

// "show=bi_iter.bi_sector,bi_opf" is one setting: names without a value behind it that are none of the
// object's own go to its value, which may have no quotes.
EventRequest with_members_joined(EventRequest request, const bpf::UserObject& object);

// By the object's settings `type`, `functions`, `start` and `stop`; passes the members in `show` to the
// object. Prints how many functions there are and how many of them cannot be probed. A use error where
// there are none.
Result<bpf::FunctionTargets> followed_objects(const EventRequest& request, bpf::UserObject& object,
                                              const Messages& messages);

}  // namespace tacho::record
