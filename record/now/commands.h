// The commands of tacho-record that show this host as it is now: `tacho bpf` without a capture, the BPF
// programs that are loaded; and `tacho stacks`, the stack of every thread, as text, and with -o as a capture.
#pragma once

#include <string>
#include <vector>

namespace tacho::record {

// `arguments`: those after the command's name. `command_line`: all arguments, for the capture's header. Both
// return the exit status. run_bpf() passes all but --interval to tacho-report.
int run_bpf(const std::vector<std::string>& arguments, const std::vector<std::string>& command_line);
int run_stacks(const std::vector<std::string>& arguments, const std::vector<std::string>& command_line);

}  // namespace tacho::record
