// Clocks that samples may be stamped with: perf's -k.
#pragma once

#include <string_view>

#include "format/result.h"

namespace tacho::record {

// "monotonic", "CLOCK_MONOTONIC_RAW", "mono", "4": the number of the clock for clock_gettime(). A clock that
// this host does not have is an error.
Result<int> parse_clock(std::string_view text);

}  // namespace tacho::record
