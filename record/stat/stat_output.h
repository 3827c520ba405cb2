// Counts as text, CSV and JSON, in the layout of perf 6.1's perf stat.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "record/stat/counters.h"
#include "record/stat/stat_options.h"

namespace tacho::record {

// The mean of several runs, and its standard error.
class Mean {
 public:
  void add_value(double value);
  double value() const { return mean_; }
  double error() const;
  // In percent of the mean; 0 for one run.
  double error_share() const { return mean_ != 0 ? 100 * error() / mean_ : 0; }

 private:
  std::size_t count_ = 0;
  double mean_ = 0, squares_ = 0;
};

// One row: an event's count, of all CPUs and threads or of one.
struct StatRow {
  std::size_t event = 0;
  int cpu = -1, thread = -1;     // -1: of all
  std::string thread_name = {};  // if there is a thread
  Mean count = {};               // of runs
  Mean enabled_ns = {}, running_ns = {};
  bool is_counted = false;  // it was on a CPU
};

struct StatTimes {
  Mean elapsed_s;
  double user_s = 0, system_s = 0;  // of the command
  std::optional<double> at_s;       // of an interval: its end since the start
};

// What rows are about: "'ls /'", "process id '12'", "system wide".
std::string title_of_target(const StatOptions& options);

// The text of these rows, in the order of events. Of an interval: without title and times. `is_first`: begins
// with the header of intervals, if the form has one.
struct StatReport {
  std::span<const CountedEvent> events;
  std::span<const StatRow> rows;
  StatTimes times;
  bool is_first = true;
};
std::string stat_text(const StatReport& report, const StatOptions& options);

}  // namespace tacho::record
