// The functions that -e calls follows: those of a program's symbol table that may be probed.
#pragma once

#include "bpf/function_probes.h"
#include "format/result.h"
#include "record/events/event_request.h"
#include "record/messages.h"

namespace tacho::record {

// By the request's settings `binary` and `functions`. An error of the use: there are none, or the program is
// of a kind whose returns cannot be probed. Warns of a program that throws exceptions, which probes on
// returns stop.
Result<bpf::FunctionTargets> followed_functions(const EventRequest& request, const Messages& messages);

}  // namespace tacho::record
