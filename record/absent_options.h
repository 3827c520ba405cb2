// Options of perf record that tacho record does not have: each is refused with a line that says what to do,
// or taken with a line that says why it changes nothing.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace tacho::record {

// Appends their rows, which --help does not list, and those of the options that ask for what is always done
// here. Lines about those that were taken and change nothing go into `notes`, which must outlive the parsing.
void add_absent_options(std::vector<cli::Option>& rows, std::vector<std::string>& notes);

}  // namespace tacho::record
