// The view of `tacho top`: reads the running recording from standard input, which tacho-record writes.
#pragma once

#include <string>
#include <vector>

#include "report/command.h"

namespace tacho::report {

// Run by tacho-record. The interactive view on a terminal, else rows as text at intervals.
Result<cli::ExitStatus> run_top(const std::vector<std::string>& arguments);

}  // namespace tacho::report
