// How each event's user stacks are taken: unwound in the kernel, copied, or by frame pointers; fallbacks,
// and messages about them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/container/environment.h"
#include "format/records/event_attr.h"
#include "record/plan/plan.h"

namespace tacho::record {

// Requests a copy of the user's registers and of `bytes` of the stack, instead of the user part of the call
// chain: the fields that perf requests, so that perf's unwinder and tacho's can use them.
void copy_user_stacks(format::EventAttr& attr, std::uint32_t bytes);

// Whether all events with unwound stacks may use something else (-g).
bool may_use_frame_pointers(const Plan& plan);

// How user stacks are taken if they cannot be unwound in the kernel (`unwind_fallback_reason`): by copies,
// which are as complete, if ehframe is only the default (-g) and the kernel can copy; else by frame pointers.
// `notes` gets a message.
enum class Fallback : std::uint8_t { Copies, FramePointers };
Fallback do_without_unwinding(PlannedEvent& event, std::vector<std::string>& notes);
// Does so if its stacks are unwound. `why`: the reason; its first line is used.
void use_frame_pointers(PlannedEvent& event, const std::string& why, std::vector<std::string>& notes);

// A step of make_plan(): decides for events of users' BPF programs whether their stacks are unwound.
void choose_stacks_of_objects(Plan& plan, std::span<const ObjectFacts> objects);

// Facts for the capture's header: one for each event with user stacks, or one for all. Empty: no unwinding
// was requested.
format::StringPairs facts_of_choice(const Plan& plan);

// Adds a message unless it is there.
void add_once(std::vector<std::string>& notes, std::string note);

}  // namespace tacho::record
