// The command line of `tacho record` as a plain struct.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/option_rows.h"
#include "cli/options.h"
#include "format/base/result.h"
#include "record/events/event_spec.h"
#include "record/events/target.h"
#include "record/options/output_options.h"
#include "record/options/sampling_options.h"
#include "record/options/time_options.h"

namespace tacho::record {

struct RecordOptions {
  std::vector<EventRequest> events;         // never empty after parsing: cpu-clock when none was named
  std::vector<EventRequest> switch_events;  // each begins another file, and is not recorded itself
  Target target;
  std::vector<std::string> command;
  SamplingOptions sampling;
  std::optional<std::uint64_t> ring_bytes;   // of one CPU; from -m with a size
  std::optional<std::uint64_t> ring_pages;   // the same as a number of pages
  std::optional<std::uint64_t> ring_budget;  // bytes for all rings together; from -m auto
  std::optional<int> compression_level = 1;  // zstd; nothing: plain
  std::string output = "perf.data";
  OutputOptions files;
  TimeOptions time;
  bool quiet = false, verbose = false;
  std::vector<std::string> notes;  // of options that change nothing here: lines for the user
  bool show_version = false;       // and nothing else
};

struct ParsedOptions {
  cli::Parsed outcome = cli::Parsed::Run;
  RecordOptions options;
};
Result<ParsedOptions> parse_options(const std::vector<std::string>& arguments);
// The same for a command that records and has options of its own. A spelling of these is no other option's.
struct CommandShape {
  std::string program, synopsis, description, epilog;
  std::vector<cli::Option> options;
};
Result<ParsedOptions> parse_options(const std::vector<std::string>& arguments, CommandShape shape);

// Options of perf record that tacho record does not have: each is refused with a line that says what to do,
// or taken with a line that says why it changes nothing.

// Appends rows of options that --help does not list: perf's that are refused or change nothing, and options
// for what tacho always does. Messages about the latter go into `notes`, which must outlive the parsing.
void add_absent_options(std::vector<cli::Option>& rows, std::vector<std::string>& notes);

// Options that choose what is watched: -a, -p, -t, -u, -C, -G, --container.

// Their rows; they set `target`, which must outlive the parsing.
void add_target_options(TargetOptions& target, std::vector<cli::Option>& rows);

}  // namespace tacho::record
