// How each event's user stacks are taken: unwound in the kernel, copied, or by frame pointers; fallbacks,
// and messages about them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bpf/loaded_object.h"
#include "bpf/unwinder/stack_walker.h"
#include "bpf/user_object.h"
#include "format/base/result.h"
#include "format/container/environment.h"
#include "record/host/host.h"
#include "record/plan/plan.h"

namespace tacho::record {

// Whether all events with unwound stacks may use something else (-g).
bool may_use_frame_pointers(const Plan& plan);

// Makes the kernel copy or walk the stacks, with a message in the plan's notes. `why`: the reason; its first
// line is used. The events are not open yet.
void use_frame_pointers(Plan& plan, const Host& host, const std::string& why);
// The same for one event whose samples a BPF program writes: the kernel walks its stacks.
void use_frame_pointers(Plan& plan, PlannedEvent& event, const std::string& why);

// Decides for events of users' BPF programs whether their stacks are unwound.
void settle_stacks_of_objects(Plan& plan, std::span<const ObjectFacts> objects);
// Wakes the recorder less often than for each mapping.
void relax_sideband(Plan& plan, const Host& host);

// Facts for the capture's header: one for each event with user stacks, or one for all. Empty: no unwinding
// was requested.
format::StringPairs facts_of_choice(const Plan& plan);

// Loads and attaches users' BPF objects, and links the unwinder into those whose events' stacks are unwound.
// `walker`: null: nothing is unwound. If the kernel accepts an object only without the unwinder, its stacks
// are walked by frame pointers, and `plan` gets a message.
Result<std::vector<bpf::LoadedObject>> load_objects(Plan& plan, std::span<const bpf::UserObject> objects,
                                                    const bpf::StackWalker* walker);

}  // namespace tacho::record
