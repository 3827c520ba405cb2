// The view of `tacho top`: reads the running recording from standard input, which tacho-record writes.
#pragma once

#include <string>
#include <vector>

#include "report/command.h"

namespace tacho::report {

// For tacho-record. On a terminal the interactive view, else rows as text every so often.
Result<cli::ExitStatus> run_top(const std::vector<std::string>& arguments);

}  // namespace tacho::report
