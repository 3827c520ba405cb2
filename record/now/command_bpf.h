// `tacho bpf` without a capture: the BPF programs that are loaded now.
#pragma once

#include <string>
#include <vector>

namespace tacho::record {

// `arguments`: those behind "bpf", which are tacho-report's but for --interval. `command_line`: the whole
// one. The exit status.
int run_bpf(const std::vector<std::string>& arguments, const std::vector<std::string>& command_line);

}  // namespace tacho::record
