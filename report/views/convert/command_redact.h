// tacho redact: a capture that may be given away.
#pragma once

#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/result.h"

namespace tacho::report {

Result<cli::ExitStatus> run_redact(const std::vector<std::string>& arguments);

}  // namespace tacho::report
