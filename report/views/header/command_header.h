// tacho header and tacho evlist: print the header of a capture and its events.
#pragma once

#include "report/command.h"

namespace tacho::report {

Result<cli::ExitStatus> run_header(const std::vector<std::string>& arguments);
Result<cli::ExitStatus> run_evlist(const std::vector<std::string>& arguments);

}  // namespace tacho::report
