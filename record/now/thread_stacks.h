// Every thread as it is now: its state, and its stack read while ptrace stops it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/result.h"
#include "record/events/target.h"

namespace tacho::record {

// A thread stopped by ptrace for as long as its registers and its stack are read.

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

// Every thread as it is now: its state, its kernel stack, and a copy of its registers and of the user's
// stack, from which tacho-report makes the user's part of the call chain.
//
// A blocked thread is not stopped. BPF's task iterator gives its registers, its stack is read from outside,
// and the iterator then says whether it ran meanwhile. Threads that never stay blocked for long enough, and
// all threads where there is no iterator, are stopped by ptrace, one at a time, while registers and stack are
// copied: some tens of microseconds.

// Numbers as the capture has them (ThreadState is an enumeration of its payload).
enum class ThreadState : std::uint32_t {
  Running,   // on a CPU
  Runnable,  // waits for one
  Sleeping,
  Uninterruptible,  // D
  Stopped,          // by a signal
  Traced,           // by another program
  Zombie,
  Idle,  // a kernel thread without work
  Parked,
  Frozen,
};
inline constexpr const char* kThreadStates[] = {"running", "runnable", "sleeping", "uninterruptible",
                                                "stopped", "traced",   "zombie",   "idle",
                                                "parked",  "frozen"};

// A system call that a thread is in.
struct CurrentCall {
  std::int32_t number = -1;  // -1: none
  std::uint64_t arguments[6] = {};
  std::string file;  // of the descriptor that is its first argument; empty: none
};

// A mutex that a thread waits for, and the thread that has it.
struct AwaitedLock {
  std::uint64_t address = 0;  // of the futex; 0: it waits for none
  std::uint32_t owner = 0;    // 0: not known
};

struct ThreadStack {
  std::uint32_t pid = 0, tid = 0;
  ThreadState state = ThreadState::Sleeping;
  CurrentCall call;
  AwaitedLock lock;
  std::vector<std::uint64_t> kernel;     // addresses, leaf first
  std::vector<std::uint64_t> registers;  // of user code, as perf numbers them (user_register_mask()); or none
  bool is_32_bit = false;
  std::vector<std::byte> stack;       // from the stack pointer on
  std::chrono::nanoseconds paused{};  // how long it was stopped at most; 0: it was not
  std::string lack;                   // why the user's part is missing; empty: it is not
};

struct ThreadsNow {
  std::vector<ThreadStack> threads;
  std::vector<std::uint32_t> processes;  // of them, each once
  std::vector<std::string> notes;        // for the user: what was done in another way, and why
};

// Registers of a sample that copies of stacks are unwound with, as bits of perf_event_attr.sample_regs_user.
std::uint64_t user_register_mask();
// The instruction pointer among the registers; nothing when there are none.
std::optional<std::uint64_t> instruction_of(const ThreadStack& thread);

// How to look at them.
enum class Looking : std::uint8_t {
  WithoutStopping,  // where the kernel can; what is running is stopped
  Stopping,         // ptrace and /proc alone
};

// Of the target's threads, but this process's own. `stop`: a signal came.
Result<ThreadsNow> threads_now(const Target& target, Looking looking, const std::function<bool()>& stop);

// Kernel addresses of the lines of /proc/PID/task/TID/stack: "[<0>] futex_wait+0x60/0x90". `places`: where a
// function is; 0: not known, and it is left out.
std::vector<std::uint64_t> parse_kernel_stack(
    std::string_view lines, const std::function<std::uint64_t(std::string_view function)>& places);
// "202 0x7f00 0x80 ... SP PC" of /proc/PID/task/TID/syscall; nothing where it says "running".
struct CallLine {
  CurrentCall call;
  std::uint64_t sp = 0, pc = 0;
};
std::optional<CallLine> parse_call_line(std::string_view line);

}  // namespace tacho::record
