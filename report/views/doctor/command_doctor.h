// tacho doctor FILE: what a capture shows and lacks on another machine.
#pragma once

#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/result.h"

namespace tacho::report {

Result<cli::ExitStatus> run_doctor(const std::vector<std::string>& arguments);

}  // namespace tacho::report
