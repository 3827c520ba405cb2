// `tacho list`: events, probe targets, recorders and BPF programs of this host, as lines or JSON.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/object/loaded_programs.h"
#include "cli/options.h"
#include "format/base/result.h"
#include "record/events/event_request.h"

namespace tacho::record {

// A JSON string with its quotes; valid UTF-8 for any bytes (format::printable_json()).
std::string json_text(std::string_view text);

struct ListOptions {
  std::string pattern;             // a glob, or a part of a name; empty: all
  std::vector<std::string> kinds;  // only events of these kinds: "sw", "hw", ... as in perf list; empty: all
  bool fields = false;             // -v: also fields of tracepoints and PMUs, or arguments of functions
  bool programs = false;           // "bpf": BPF programs instead of events; the pattern is for their names
  bool recorders = false;          // "recorders": recorders instead of events
  bool json = false;               // one object for each line
  std::optional<std::uint64_t> cost_seconds;  // measure the programs' run times for this long
  cli::Parsed outcome = cli::Parsed::Run;
};
Result<ListOptions> parse_list_options(const std::vector<std::string>& arguments);

// The events that can be recorded here, one for each line. An error if none matches, with the nearest name.
Result<std::string> list_events(const ListOptions& options);

// `tacho list uprobe:FILE:GLOB`, `kprobe:GLOB`, `usdt:FILE:GLOB`: functions and USDT markers for probes.

// Whether the pattern starts with the word of a probe and a colon, as "uprobe:/bin/bash:read*".
bool is_probe_pattern(std::string_view pattern);

// A line for each function or marker that matches, sorted by name. With `fields` also the arguments, from
// debugging information, the kernel's BTF or the marker's note. An error if none matches, with the nearest
// name.
Result<std::string> list_probes(const ListOptions& options);

// `tacho list bpf`: the loaded BPF programs.

using Costs = std::map<std::uint32_t, bpf::Cost>;  // by program id

// A line for each program, and one for each further attach point; with details (-v) more. `costs`: measured
// during `seconds`; nullopt: the kernel's counts, which it keeps only while its statistics are enabled.
// `room`: columns of the terminal; 0: no limit.
std::string programs_in_lines(const std::vector<bpf::ListedProgram>& programs,
                              const std::optional<Costs>& costs, std::uint64_t seconds, bool with_details,
                              std::size_t room);

// The same as one JSON object for each program, with all details.
std::string programs_in_json(const std::vector<bpf::ListedProgram>& programs,
                             const std::optional<Costs>& costs, std::uint64_t seconds);

// An error if no program's name matches.
Result<std::string> list_bpf_programs(const ListOptions& options);

// `tacho list recorders` and `tacho record -e NAME/help/`.

// A line for each recorder whose name matches. An error if none does.
Result<std::string> list_recorders(const ListOptions& options);

// Help of a recorder, several lines: options, fields of its events, hooks and view. For a user's BPF program
// the same without a view.
Result<std::string> recorder_help(const EventRequest& request);
// Prints the help of the first EVENT/help/ of a command line. Returns the exit status; nullopt: no event asks
// for help.
std::optional<int> answer_help_request(std::span<const EventRequest> events, std::string_view command);

}  // namespace tacho::record
