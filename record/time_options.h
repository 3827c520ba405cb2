// The options that say when samples are taken, and who may change that.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "cli/options.h"
#include "format/result.h"
#include "record/control_place.h"
#include "record/schedule.h"

namespace tacho::record {

struct TimeOptions {
  Delay delay;
  std::optional<std::chrono::milliseconds> duration;
  std::optional<ControlPlace> control;
  std::optional<std::chrono::milliseconds>
      interval;               // between readings of summaries; nothing: at the end alone
  bool needs_summary = true;  // an interval without anything to read is told of: somebody asked for it

  // Whether samples begin with the exec of a command, or at a time of their own.
  bool begins_late() const { return delay.starts_disabled || !delay.ranges.empty(); }
};

// Their rows; what they say goes into `time`, which must outlive the parsing.
void add_time_options(TimeOptions& time, std::vector<cli::Option>& rows);
// Refuses what makes no sense together.
Result<> check_time_options(const TimeOptions& time, bool has_command);

}  // namespace tacho::record
