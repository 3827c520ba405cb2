// tacho dump: every record of a capture, decoded.
#pragma once

#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/result.h"

namespace tacho::report {

Result<cli::ExitStatus> run_dump(const std::vector<std::string>& arguments);

}  // namespace tacho::report
