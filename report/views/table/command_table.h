// tacho table: counts, sums and percentiles of a value by groups of samples.
#pragma once

#include "report/command.h"

namespace tacho::report {

Result<cli::ExitStatus> run_table(const std::vector<std::string>& arguments);

}  // namespace tacho::report
