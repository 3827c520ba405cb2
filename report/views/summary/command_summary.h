// tacho summary: one screen about a capture.
#pragma once

#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/result.h"

namespace tacho::report {

Result<cli::ExitStatus> run_summary(const std::vector<std::string>& arguments);

}  // namespace tacho::report
