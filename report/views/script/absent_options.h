// Options of perf script that tacho script does not have: each is refused with a line that says what to do.
#pragma once

#include <vector>

#include "cli/options.h"

namespace tacho::report {

// Appends their rows, which --help does not list.
void add_absent_options(std::vector<cli::Option>& rows);

}  // namespace tacho::report
