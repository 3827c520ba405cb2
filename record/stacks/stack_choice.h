// How the user's side of stacks is had, event by event: what falls back to copies of the stack, which are as
// whole, or where nothing copies them to frame pointers, and what is said of it.
#pragma once

#include <span>
#include <string>

#include "bpf/unwinder/stack_walker.h"
#include "bpf/user_object.h"
#include "format/header_strings.h"
#include "format/result.h"
#include "record/host/host.h"
#include "record/plan/plan.h"

namespace tacho::record {

// Whether all events whose stacks are to be unwound may do with something else as well (-g).
bool may_use_frame_pointers(const Plan& plan);

// Has the kernel copy or walk them, which the plan's notes say. `why`: a refusal, of which the first line is
// kept. The events are not open yet.
void use_frame_pointers(Plan& plan, const Host& host, const std::string& why);
// The same of one event, whose samples a program writes: the kernel walks its stacks.
void use_frame_pointers(Plan& plan, PlannedEvent& event, const std::string& why);

// Of what BPF programs of others write: whether they let the unwinder look at the stack first.
void settle_stacks_of_objects(Plan& plan, std::span<const ObjectFacts> objects);
// Nobody needs to hear of each mapping at once.
void relax_sideband(Plan& plan, const Host& host);

// What the capture's header says of it: one fact for each event that has a user's side, or one for all. Empty
// when nobody asked for unwound stacks.
format::StringPairs facts_of_choice(const Plan& plan);

// BPF programs of others, in the kernel, with the unwinder in those whose events' stacks are to be unwound.

// Loads and attaches them. `walker`: null when nothing is unwound. Where the kernel takes an object only
// without the unwinder, its stacks are walked by frame pointers, which `plan` says then.
Result<> load_objects(Plan& plan, std::span<bpf::UserObject> objects, const bpf::StackWalker* walker);

}  // namespace tacho::record
