// `tacho why`: a recording of what says where time goes, and tacho-report, which says it.
#pragma once

#include <string>
#include <vector>

namespace tacho::record {

// Records, shows the answer, and returns the exit status.
int run_why(const std::vector<std::string>& command_line);

}  // namespace tacho::record
