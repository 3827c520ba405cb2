// Calls as text: one after another, as a tree of who called whom, by function; and as JSON.
#pragma once

#include <cstddef>
#include <cstdint>

#include "report/output/printable.h"
#include "report/output/text_output.h"
#include "report/views/calls/call_values.h"
#include "report/views/calls/callers.h"

namespace tacho::report {

enum class CallForm : std::uint8_t { Replay, Graph, Report, Json, Chrome };

// `values`: null leaves arguments and what was returned out. `room`: columns of a line of text; 0: no limit.
void write_calls(TextOutput& out, CallForm form, const CallList& list, const Callers& tree,
                 const CallValues* values, Names names, std::size_t room);

// "1.234 us", "12.001 ms": three decimals of the unit in which it has one to three digits before them.
std::string duration_text(std::uint64_t nanoseconds);

}  // namespace tacho::report
