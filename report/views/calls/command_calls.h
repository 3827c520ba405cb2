// tacho calls: every call of a program's functions, with its duration.
#pragma once

#include <cstddef>
#include <cstdint>

#include "report/command.h"
#include "report/output/text_output.h"
#include "report/views/calls/call_list.h"
#include "report/views/calls/call_values.h"

namespace tacho::report {

// Calls as text: one after another, as a tree of who called whom, by function; and as JSON.

enum class CallForm : std::uint8_t { Replay, Graph, Report, Json, Chrome };

// `values`: null leaves arguments and what was returned out. `room`: columns of a line of text; 0: no limit.
void write_calls(TextOutput& out, CallForm form, const CallList& list, const Callers& tree,
                 const CallValues* values, Names names, std::size_t room);

// "1.234 us", "12.001 ms": three decimals of the unit in which it has one to three digits before them.
std::string duration_text(std::uint64_t nanoseconds);

Result<cli::ExitStatus> run_calls(const std::vector<std::string>& arguments);

}  // namespace tacho::report
