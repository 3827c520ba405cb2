// tacho convert: a capture in another form, or a part of one.
#pragma once

#include <string>
#include <vector>

#include "cli/exit_status.h"
#include "format/base/result.h"

namespace tacho::report {

Result<cli::ExitStatus> run_convert(const std::vector<std::string>& arguments);

}  // namespace tacho::report
