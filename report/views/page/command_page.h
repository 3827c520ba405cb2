// `tacho page`: its options, and the file that it writes.
#pragma once

#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/result.h"

namespace tacho::report {

Result<cli::ExitStatus> run_page(const std::vector<std::string>& arguments);

}  // namespace tacho::report
