// How the user's side of stacks is had, event by event: what falls back to frame pointers, and what is said
// of it.
#pragma once

#include <string>

#include "format/header_strings.h"
#include "record/host/host.h"
#include "record/plan.h"

namespace tacho::record {

// Whether all events whose stacks are to be unwound may do with frame pointers as well (-g).
bool may_use_frame_pointers(const Plan& plan);

// Has the kernel walk them. `why`: a refusal, of which the first line is kept. The events are not open yet.
void use_frame_pointers(Plan& plan, const Host& host, const std::string& why);

// What the capture's header says of it: one fact for each event that has a user's side, or one for all. Empty
// when nobody asked for unwound stacks.
format::StringPairs facts_of_choice(const Plan& plan);

}  // namespace tacho::record
