// The options that say whom to watch.
#pragma once

#include <vector>

#include "cli/options.h"
#include "record/events/target.h"

namespace tacho::record {

// Their rows; what they say goes into `target`, which must outlive the parsing.
void add_target_options(TargetOptions& target, std::vector<cli::Option>& rows);

}  // namespace tacho::record
