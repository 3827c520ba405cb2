// BPF programs that sit on a tracepoint, whoever put them there, and whether they can cost its perf events
// samples (return_value.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tacho::bpf {

struct TracepointProgram {
  std::uint32_t id = 0;
  std::string name;  // the kernel's: 15 letters at most; foreign
  bool may_drop = true;
};

// The programs on the tracepoint of an open perf event. Nothing when the kernel does not tell: without
// CAP_PERFMON, or before Linux 4.16.
std::vector<TracepointProgram> programs_on_tracepoint(int event_fd);

}  // namespace tacho::bpf
