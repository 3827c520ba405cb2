// `tacho stacks`: the stack of every thread now, as text, and with -o as a capture.
#pragma once

#include <string>
#include <vector>

namespace tacho::record {

// `arguments`: those behind "stacks". `command_line`: the whole one, for the capture. The exit status.
int run_stacks(const std::vector<std::string>& arguments, const std::vector<std::string>& command_line);

}  // namespace tacho::record
