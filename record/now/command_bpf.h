// `tacho bpf` without a capture: the BPF programs that are loaded now.
#pragma once

#include <string>
#include <vector>

namespace tacho::record {

// `arguments`: those after "bpf"; all but --interval are passed to tacho-report. `command_line`: all
// arguments, for the capture's header. Returns the exit status.
int run_bpf(const std::vector<std::string>& arguments, const std::vector<std::string>& command_line);

}  // namespace tacho::record
