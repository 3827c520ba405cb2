// `tacho list`: the events that can be recorded here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "format/result.h"

namespace tacho::record {

struct ListOptions {
  std::string pattern;             // a glob, or a part of the names; empty: everything
  std::vector<std::string> kinds;  // "sw": of these alone, as perf list calls them; empty: of all
  bool fields = false;             // also what an event's record or configuration holds
  bool programs = false;           // "bpf": BPF programs in place of events; the pattern is for their names
  bool recorders = false;          // "recorders": those of the catalogue
  bool json = false;               // an object a line
  std::optional<std::uint64_t> cost_seconds;  // what they cost is measured for so long
  cli::Parsed outcome = cli::Parsed::Run;
};
Result<ListOptions> parse_list_options(const std::vector<std::string>& arguments);

// A line for each event and its kind; an error when the pattern matches none, with the nearest name.
Result<std::string> list_events(const ListOptions& options);

}  // namespace tacho::record
