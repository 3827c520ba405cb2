// tacho pack: puts names of all addresses that were hit into the capture.
#pragma once

#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/result.h"

namespace tacho::report {

Result<cli::ExitStatus> run_pack(const std::vector<std::string>& arguments);

}  // namespace tacho::report
