// Every thread as it is now: its state, and its stack read while ptrace stops it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "record/events/target.h"

namespace tacho::record {

// The numbers are those of the enumeration in the capture's payload.
enum class ThreadState : std::uint32_t {
  Running,   // on a CPU
  Runnable,  // waits for a CPU
  Sleeping,
  Uninterruptible,  // D
  Stopped,          // by a signal
  Traced,           // by another program's ptrace
  Zombie,
  Idle,  // an idle kernel thread
  Parked,
  Frozen,
};
inline constexpr const char* kThreadStates[] = {"running", "runnable", "sleeping", "uninterruptible",
                                                "stopped", "traced",   "zombie",   "idle",
                                                "parked",  "frozen"};

// The system call that a thread is in.
struct CurrentCall {
  std::int32_t number = -1;  // -1: none
  std::uint64_t arguments[6] = {};
  std::string file;  // the file of the descriptor in its first argument; empty: none
};

// A mutex that a thread waits for, and its owner.
struct AwaitedLock {
  std::uint64_t address = 0;  // of the futex; 0: none
  std::uint32_t owner = 0;    // 0: unknown
};

struct ThreadStack {
  std::uint32_t pid = 0, tid = 0;
  ThreadState state = ThreadState::Sleeping;
  CurrentCall call;
  AwaitedLock lock;
  std::vector<std::uint64_t> kernel;     // addresses, leaf first
  std::vector<std::uint64_t> registers;  // of user code, numbered as by perf (user_register_mask()); or empty
  bool is_32_bit = false;
  std::vector<std::byte> stack;       // from the stack pointer up
  std::chrono::nanoseconds paused{};  // upper bound of how long it was stopped; 0: it was not
  std::string missing_reason;         // why the user part is missing; empty: it is not
};

// Every thread now: its state, its kernel stack, and a copy of its registers and its user stack, which
// tacho-report unwinds.
//
// A blocked thread is not stopped: BPF's task iterator provides its registers, its stack is read from
// outside, and the iterator shows afterwards whether it ran meanwhile. Threads that are never blocked long
// enough, and all threads if there is no iterator, are stopped by ptrace, one at a time, while registers and
// stack are copied: for some tens of microseconds.
struct ThreadsNow {
  std::vector<ThreadStack> threads;
  std::vector<std::uint32_t> processes;  // each once
  std::vector<std::string> notes;        // messages for the user about fallbacks
};

// The registers that unwinding copies needs, as bits of perf_event_attr.sample_regs_user.
std::uint64_t user_register_mask();
// The instruction pointer among the registers; nullopt: there are none.
std::optional<std::uint64_t> instruction_of(const ThreadStack& thread);

// How threads are read.
enum class Looking : std::uint8_t {
  WithoutStopping,  // if the kernel can; running threads are stopped
  Stopping,         // only by ptrace and /proc
};

// The threads of the target, without this process's own. `stop`: a signal came.
Result<ThreadsNow> threads_now(const Target& target, Looking looking, const std::function<bool()>& stop);

// Kernel addresses from the lines of /proc/PID/task/TID/stack: "[<0>] futex_wait+0x60/0x90". `start_of`: the
// address of a function; 0: unknown, and the line is skipped.
std::vector<std::uint64_t> parse_kernel_stack(
    std::string_view lines, const std::function<std::uint64_t(std::string_view function)>& start_of);
// "202 0x7f00 0x80 ... SP PC" of /proc/PID/task/TID/syscall; nullopt if it says "running".
struct CallLine {
  CurrentCall call;
  std::uint64_t sp = 0, pc = 0;
};
std::optional<CallLine> parse_call_line(std::string_view line);

}  // namespace tacho::record
