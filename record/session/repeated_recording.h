// A series of captures of one command, or of several in turns: tacho record --repeat.
#pragma once

#include <string>
#include <vector>

#include "record/options/options.h"

namespace tacho::record {

// Makes the captures, each in a process of its own, and prints where they are. Returns the exit status: that
// of the first run that failed, or 0.
int record_repeatedly(const RecordOptions& options, const std::vector<std::string>& command_line);

}  // namespace tacho::record
