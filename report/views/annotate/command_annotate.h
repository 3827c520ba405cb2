// `tacho annotate`: instructions and source lines of functions, with each event's share of samples.
#pragma once

#include <string>
#include <vector>

#include "report/command.h"

namespace tacho::report {

Result<cli::ExitStatus> run_annotate(const std::vector<std::string>& arguments);

}  // namespace tacho::report
