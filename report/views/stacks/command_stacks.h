// `tacho stacks FILE`: threads of a capture of `tacho stacks`, joined by equal stacks.
#pragma once

#include <string>
#include <vector>

#include "report/command.h"

namespace tacho::report {

Result<cli::ExitStatus> run_stacks(const std::vector<std::string>& arguments);

}  // namespace tacho::report
