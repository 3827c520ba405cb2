// BPF programs that run when the recorder wants them to, and not when something happens.
#pragma once

#include <chrono>

#include "format/result.h"

namespace tacho::bpf {

// A program SEC("syscall"), once.
Result<> run_once(int program_fd);

using RunUntil = std::chrono::steady_clock::time_point;

// A program SEC("iter/task") or the like, by its link, for all the things of its kind that there are now;
// what it writes (bpf_seq_write()) is not looked at. ETIMEDOUT: it had come to no end then.
Result<> run_iterator(int link_fd, RunUntil until);
// The same of an iterator that is open.
Result<> read_iterator(int fd, RunUntil until);

}  // namespace tacho::bpf
