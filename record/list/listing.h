// `tacho list`: events, probe places and BPF programs of this host, as lines or JSON.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/object/loaded_programs.h"
#include "cli/options.h"
#include "format/base/result.h"
#include "record/events/event_request.h"

namespace tacho::record {

// A JSON string with its quotes: format::printable_json(), so UTF-8 whatever the bytes.
std::string json_text(std::string_view text);

class JsonLine {
 public:
  void text(std::string_view name, std::string_view value) { member(name, json_text(value)); }
  void texts(std::string_view name, const std::vector<std::string>& values);
  void number(std::string_view name, std::uint64_t value) { member(name, std::to_string(value)); }
  // The line with its end.
  std::string finished() const { return text_ + "}\n"; }

 private:
  void member(std::string_view name, std::string_view value);
  std::string text_ = "{";
};

// `tacho list`: the events that can be recorded here.

struct ListOptions {
  std::string pattern;             // a glob, or a part of the names; empty: everything
  std::vector<std::string> kinds;  // "sw": of these alone, as perf list calls them; empty: of all
  bool fields = false;             // also what an event's record or configuration holds
  bool programs = false;           // "bpf": BPF programs instead of events; the pattern is for their names
  bool recorders = false;          // "recorders": the ready-made ones
  bool json = false;               // an object a line
  std::optional<std::uint64_t> cost_seconds;  // measure their costs for this long
  cli::Parsed outcome = cli::Parsed::Run;
};
Result<ListOptions> parse_list_options(const std::vector<std::string>& arguments);

// A line for each event and its kind; an error when the pattern matches none, with the nearest name.
Result<std::string> list_events(const ListOptions& options);

// `tacho list uprobe:FILE:GLOB` and the like: places that probes can be put on.

// Whether the pattern starts with a probe's word, "uprobe:/bin/bash:read*", and not only with its form.
bool asks_for_probes(std::string_view pattern);

// A line for each function or marker that matches, in the order of names; with `fields` their arguments, as
// far as debugging information, the kernel's BTF or the marker's note has them. An error when none matches,
// with the nearest name.
Result<std::string> list_probes(const ListOptions& options);

// `tacho list bpf`: the BPF programs that are loaded now.

// A line for each program, a second one where it is attached to several places; with details (-v) more.
// `costs`: in `seconds`; nothing: the kernel's counts while its statistics were on.
std::string programs_in_lines(const std::vector<bpf::ListedProgram>& programs,
                              const std::optional<std::map<std::uint32_t, bpf::Cost>>& costs,
                              std::uint64_t seconds, bool with_details);

// The same as a JSON object a program, with all details.
std::string programs_in_json(const std::vector<bpf::ListedProgram>& programs,
                             const std::optional<std::map<std::uint32_t, bpf::Cost>>& costs,
                             std::uint64_t seconds);

// An error when the pattern matches no program's name.
Result<std::string> list_bpf_programs(const ListOptions& options);

// `tacho list recorders` and `tacho record -e NAME/help/`.

// A line for each recorder whose name matches, an error when none does. `pattern`: a glob or a part of a
// name.
Result<std::string> list_recorders(const ListOptions& options);

// Its options, its events' fields, its hooks and its view: a text of several lines. Of a user's BPF program
// as well, but for the view.
Result<std::string> recorder_help(const EventRequest& request);

}  // namespace tacho::record
