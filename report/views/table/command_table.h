// tacho table: samples in groups, and what their values come to.
#pragma once

#include "report/command.h"

namespace tacho::report {

Result<cli::ExitStatus> run_table(const std::vector<std::string>& arguments);

}  // namespace tacho::report
