// tacho folded: distinct stacks with their weight, the input of flame graphs.
#pragma once

#include "report/command.h"

namespace tacho::report {

Result<cli::ExitStatus> run_folded(const std::vector<std::string>& arguments);

}  // namespace tacho::report
