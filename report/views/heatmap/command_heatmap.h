// tacho heatmap: how values are spread over time, and what stands out in a part of that.
#pragma once

#include "report/command.h"

namespace tacho::report {

Result<cli::ExitStatus> run_heatmap(const std::vector<std::string>& arguments);

}  // namespace tacho::report
