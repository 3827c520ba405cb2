// A recording from its options to its files: recorded, packed and redacted.
#pragma once

#include <string>
#include <vector>

#include "record/options/options.h"

namespace tacho::record {

// Prints what the files have, or why there are none, and returns the exit status of this program.
// `command_line`: for the capture's header.
int record_capture(RecordOptions& options, const std::vector<std::string>& command_line);

}  // namespace tacho::record
