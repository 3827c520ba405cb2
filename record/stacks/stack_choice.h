// How each event's user stacks are taken: unwound in the kernel, copied, or by frame pointers; fallbacks,
// and messages about them.
#pragma once

#include <span>
#include <string>

#include "bpf/unwinder/stack_walker.h"
#include "bpf/user_object.h"
#include "format/base/result.h"
#include "format/container/environment.h"
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
// The recorder need not be woken for each mapping.
void relax_sideband(Plan& plan, const Host& host);

// Facts for the capture's header: one for each event that has user stacks, or one for all. Empty when no
// unwinding was asked for.
format::StringPairs facts_of_choice(const Plan& plan);

// Loads users' BPF objects, with the unwinder linked into the ones whose events' stacks are to be unwound.

// Loads and attaches them. `walker`: null when nothing is unwound. Where the kernel takes an object only
// without the unwinder, its stacks are walked by frame pointers, which `plan` says then.
Result<> load_objects(Plan& plan, std::span<bpf::UserObject> objects, const bpf::StackWalker* walker);

}  // namespace tacho::record
