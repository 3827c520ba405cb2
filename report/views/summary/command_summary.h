// tacho summary: one screen about a capture.
#pragma once

#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/result.h"
#include "report/views/summary/capture_summary.h"

namespace tacho::report {

// The commands that show most of a capture: what it has decides which.

struct NextCommand {
  std::string command;  // to be typed or pasted
  std::string why;      // what it shows
};

// Three, or fewer of a capture without samples. `input`: the capture as it was named; "-" stands as FILE.
std::vector<NextCommand> next_commands(const CaptureSummary& summary, const std::string& input);

Result<cli::ExitStatus> run_summary(const std::vector<std::string>& arguments);

}  // namespace tacho::report
