// The command line of `tacho stat` as a plain struct.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "format/base/result.h"
#include "record/events/event_request.h"
#include "record/events/target.h"

namespace tacho::record {

// Text and Csv: as perf stat prints them; Lines: its JSON, an object for each count (-j); Document: one
// object with all counts, for each interval a line of its own.
enum class StatForm : std::uint8_t { Text, Csv, Lines, Document };
// How counts are added up.
enum class StatRows : std::uint8_t { All, Cpus, Threads };

struct StatOptions {
  std::vector<EventRequest> events;  // never empty after parsing, except with --null
  Target target;
  std::vector<std::string> command;
  StatForm form = StatForm::Text;
  StatRows rows = StatRows::All;
  std::string separator;      // of StatForm::Csv
  bool groups_digits = true;  // 1,234,567 in text
  bool scales = true;         // counts of events that shared a counter
  std::uint64_t runs = 1;     // of the command
  bool syncs = false;         // calls sync() before each run
  std::string output;         // a file; empty: standard error
  bool appends = false;
  std::chrono::milliseconds delay{0};
  std::optional<std::chrono::milliseconds> interval, duration;
  std::uint64_t most_intervals = 0;  // 0: no maximum
};

struct ParsedStat {
  cli::Parsed outcome = cli::Parsed::Run;
  StatOptions options;
};
Result<ParsedStat> parse_stat_options(const std::vector<std::string>& arguments);

}  // namespace tacho::record
