// tacho hist: how the values of a payload's or tracepoint's field are distributed.
#pragma once

#include "report/command.h"

namespace tacho::report {

Result<cli::ExitStatus> run_hist(const std::vector<std::string>& arguments);

}  // namespace tacho::report
