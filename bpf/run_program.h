// BPF programs that run when the recorder wants them to, and not when something happens.
#pragma once

#include "format/result.h"

namespace tacho::bpf {

// A program SEC("syscall"), once.
Result<> run_once(int program_fd);

// A program SEC("iter/task") or the like, by its link, for all the things of its kind that there are now;
// what it writes (bpf_seq_write()) is not looked at.
Result<> run_iterator(int link_fd);

}  // namespace tacho::bpf
