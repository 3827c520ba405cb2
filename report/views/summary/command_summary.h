// tacho summary: one screen about a capture.
#pragma once

#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/result.h"
#include "report/views/summary/capture_summary.h"

namespace tacho::report {

// A command that the summary recommends, depending on what the capture has.

struct NextCommand {
  std::string command;  // quoted for a shell
  std::string why;      // what it shows
};

// Three commands, or fewer for a capture without samples. `input` is the capture's name; "-" becomes FILE.
std::vector<NextCommand> next_commands(const CaptureSummary& summary, const std::string& input);

}  // namespace tacho::report
