// tacho calls: every call of a program's functions, with its duration.
#pragma once

#include <cstddef>
#include <cstdint>

#include "report/command.h"
#include "report/output/text_output.h"
#include "report/views/calls/call_list.h"
#include "report/views/calls/call_values.h"

namespace tacho::report {

// The forms of the output: calls one after another, a call graph, a table by function, JSON, Chrome's trace.

enum class CallForm : std::uint8_t { Replay, Graph, Report, Json, Chrome };

// `values` null: without arguments and return values. `room` is the width of a line; 0: no limit.
void write_calls(TextOutput& out, CallForm form, const CallList& list, const Callers& tree,
                 const CallValues* values, Names names, std::size_t room);

// "1.234 us", "12.001 ms": in the unit that gives one to three digits before the point.
std::string duration_text(std::uint64_t nanoseconds);

}  // namespace tacho::report
