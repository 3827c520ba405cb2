// `tacho stat`: counts events, as perf stat does.
#pragma once

#include <string>
#include <vector>

#include "format/base/result.h"

namespace tacho::record {

// The exit status.
Result<int> run_stat(const std::vector<std::string>& arguments);

}  // namespace tacho::record
