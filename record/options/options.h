// The command line of `tacho record` as a plain struct.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "format/base/result.h"
#include "record/events/event_spec.h"
#include "record/events/target.h"
#include "record/options/output_options.h"
#include "record/options/repeat_options.h"
#include "record/options/sampling_options.h"
#include "record/options/time_options.h"

namespace tacho::record {

struct RecordOptions {
  std::vector<EventRequest> events;         // never empty after parsing: the default is cpu-clock
  std::vector<EventRequest> switch_events;  // --switch-output-event
  Target target;
  std::vector<std::string> command;
  SamplingOptions sampling;
  std::optional<std::uint64_t> ring_bytes;   // of one CPU; from -m with a size
  std::optional<std::uint64_t> ring_pages;   // the same as a number of pages
  std::optional<std::uint64_t> ring_budget;  // bytes for all rings together; from -m auto
  std::optional<int> compression_level = 1;  // zstd; nothing: plain
  std::string output = "perf.data";
  OutputOptions files;
  RepeatOptions repeat;
  TimeOptions time;
  bool quiet = false, verbose = false;
  bool says_losses = true;         // false: the view that reads the capture says what was lost
  std::vector<std::string> notes;  // messages about options without effect
  bool show_version = false;
  std::string compiled_source;  // --compile: the C source of a BPF program; nothing is recorded
};

struct ParsedOptions {
  cli::Parsed outcome = cli::Parsed::Run;
  RecordOptions options;
};
// Another command that records, with options of its own; those replace options of record with the same names.
struct CommandShape {
  std::string program, synopsis, description, epilog;
  std::vector<cli::Option> options;
};
Result<ParsedOptions> parse_options(const std::vector<std::string>& arguments,
                                    std::optional<CommandShape> shape = {});

}  // namespace tacho::record
