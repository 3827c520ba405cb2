// tacho redact: copies a capture without private data.
#pragma once

#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/result.h"

namespace tacho::report {

Result<cli::ExitStatus> run_redact(const std::vector<std::string>& arguments);

}  // namespace tacho::report
