// tacho calls: every call of a program's functions, with its duration.
#pragma once

#include "report/command.h"

namespace tacho::report {

Result<cli::ExitStatus> run_calls(const std::vector<std::string>& arguments);

}  // namespace tacho::report
