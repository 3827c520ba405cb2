// tacho script: every sample as text.
#pragma once

#include "report/command.h"

namespace tacho::report {

Result<cli::ExitStatus> run_script(const std::vector<std::string>& arguments);

}  // namespace tacho::report
