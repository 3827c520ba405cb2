// Completion of a recording's command line (cli/completion.h): events, recorders with their options,
// processes, users, cgroups.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/completion.h"

namespace tacho::record {

// The last event of a text of -e, which may be unfinished.
struct LastEvent {
  std::size_t start = 0;             // of the event in the text
  std::optional<std::size_t> terms;  // where its terms begin, if the text ends in them
};
LastEvent last_event_of(std::string_view text);

// Prints events that continue the text of -e: recorders, tracepoints, events of PMUs, functions for probes,
// BPF objects; inside of the slashes the options of the event. `place.text` is the whole value of -e.
void print_events(const cli::ValuePlace& place);

// cli::CompleteValue of commands that record: events, processes, users, cgroups, names of --filter.
bool complete_recording(const cli::ValuePlace& place);

}  // namespace tacho::record
