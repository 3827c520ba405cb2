// The options --off-cpu and --wakers: one table for every view that shows waits.
#pragma once

#include <vector>

#include "cli/options.h"
#include "report/query/waits.h"

namespace tacho::report {

// Fill `options`, which must outlive the parsing.
void add_wait_options(std::vector<cli::Option>& rows, WaitOptions& options);

// --wall shows threads whole: an error of the use where the filter chooses parts of them, but for times.
Result<> check_wall_filter(const Filter& filter);

}  // namespace tacho::report
