// A thread stopped by ptrace for as long as its registers and its stack are read.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "format/base/result.h"

namespace tacho::record {

// Attached with PTRACE_SEIZE and stopped with PTRACE_INTERRUPT: no signal is sent, a thread that was stopped
// by a signal is stopped afterwards too, and when this process dies at any moment the kernel lets the thread
// go on. It must be made and destroyed by one thread (tracers are threads).
class StoppedThread {
 public:
  // Waits for it at most `patience`: a thread in uninterruptible sleep does not stop. It stays attached then
  // until the calling thread ends, and runs.
  static Result<StoppedThread> stop(pid_t thread, std::chrono::milliseconds patience);
  StoppedThread(StoppedThread&& other) noexcept
      : thread_(std::exchange(other.thread_, 0)), signal_(other.signal_), began_(other.began_) {}
  StoppedThread& operator=(StoppedThread&&) = delete;
  ~StoppedThread() { (void)let_go(); }

  // General registers, as PTRACE_GETREGSET gives them: user_regs_struct.
  Result<std::vector<std::uint64_t>> registers() const;
  // It goes on. How long it was stopped at most: from the request to stop on.
  std::chrono::nanoseconds let_go();

 private:
  StoppedThread(pid_t thread, int signal, std::chrono::steady_clock::time_point began)
      : thread_(thread), signal_(signal), began_(began) {}
  pid_t thread_ = 0;
  int signal_ = 0;  // that was about to be delivered to it, and is
  std::chrono::steady_clock::time_point began_;
};

}  // namespace tacho::record
