// tacho report: samples counted by thread, module and function.
#pragma once

#include "report/command.h"

namespace tacho::report {

Result<cli::ExitStatus> run_report(const std::vector<std::string>& arguments);

}  // namespace tacho::report
