#include "record/now/stopped_thread.h"

#include <elf.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string>

namespace tacho::record {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kEventShift = 16;  // of a ptrace event in a wait status

// The signal that a stop is about: 0 where it is the stop that was asked for, or a group-stop.
int signal_of(int status) { return status >> kEventShift == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status); }

}  // namespace

Result<StoppedThread> StoppedThread::stop(pid_t thread, std::chrono::milliseconds patience) {
  const std::string name = "thread " + std::to_string(thread);
  if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) {
    const int code = errno;
    return code == EPERM ? Error{name +
                                     " cannot be stopped: another program traces it, or the rights are "
                                     "missing (root, or CAP_SYS_PTRACE)",
                                 code}
                         : system_error(name + " cannot be stopped", code);
  }
  const auto began = Clock::now();
  if (::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0)
    return system_error(name + " cannot be stopped", errno);
  for (int looks = 0;; ++looks) {
    int status = 0;
    const pid_t got = ::waitpid(thread, &status, __WALL | WNOHANG);
    if (got < 0 && errno != EINTR) return system_error(name + " cannot be stopped", errno);
    if (got == thread && !WIFSTOPPED(status)) return Error{name + " ended", ESRCH};
    if (got == thread) return StoppedThread(thread, signal_of(status), began);
    if (Clock::now() - began > patience) return Error{name + " does not stop", ETIMEDOUT};
    // It mostly stops within some microseconds.
    constexpr int kSpins = 200;
    if (looks >= kSpins) (void)::poll(nullptr, 0, 1);
  }
}

Result<std::vector<std::uint64_t>> StoppedThread::registers() const {
  std::array<std::uint64_t, 64> words{};
  iovec place{words.data(), sizeof words};
  if (::ptrace(PTRACE_GETREGSET, thread_, NT_PRSTATUS, &place) != 0)
    return system_error("registers of thread " + std::to_string(thread_), errno);
  return std::vector<std::uint64_t>(words.begin(), words.begin() + place.iov_len / sizeof words.front());
}

std::chrono::nanoseconds StoppedThread::let_go() {
  if (thread_ == 0) return {};
  (void)::ptrace(PTRACE_DETACH, std::exchange(thread_, 0), nullptr, static_cast<long>(signal_));
  return Clock::now() - began_;
}

}  // namespace tacho::record
