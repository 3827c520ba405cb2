// `tacho report` and `tacho annotate` on a terminal, and `tacho tui`: the interactive view.
#pragma once

#include <string>
#include <vector>

#include "report/command.h"

namespace tacho::report {

// Prints text if standard output is not a terminal.
Result<cli::ExitStatus> run_report(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_annotate(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_tui(const std::vector<std::string>& arguments);

}  // namespace tacho::report
