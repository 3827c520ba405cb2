// Options of perf record that tacho record does not have: each is refused with a line that says what to do.
#pragma once

#include <vector>

#include "cli/options.h"

namespace tacho::record {

// Appends their rows, which --help does not list, and those of the options that ask for what is always done
// here.
void add_absent_options(std::vector<cli::Option>& rows);

}  // namespace tacho::record
