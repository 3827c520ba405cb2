// One thread as it is now: its state, system call, registers and stacks, and the lock for which it waits.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

enum class LockKind : std::uint32_t { Mutex, ReadWriteLock };

// A lock that a thread waits for, and its owner (awaited_locks.h).
struct AwaitedLock {
  std::uint64_t address = 0;  // of the futex; 0: none
  LockKind kind = LockKind::Mutex;
  std::uint32_t owner = 0;
  std::uint32_t owner_later = 0;  // at the second look; 0: the thread no longer waited, or ran meanwhile
};

struct ThreadStack {
  std::uint32_t pid = 0, tid = 0;
  ThreadState state = ThreadState::Sleeping;
  CurrentCall call;
  AwaitedLock lock;
  std::uint64_t moved = 0;               // context switches between the two looks at locks
  std::vector<std::uint64_t> kernel;     // addresses, leaf first
  std::vector<std::uint64_t> registers;  // of user code, numbered as by perf (user_register_mask()); or empty
  bool is_32_bit = false;
  std::vector<std::byte> stack;       // from the stack pointer up
  std::chrono::nanoseconds paused{};  // upper bound of how long it was stopped; 0: it was not
  std::string missing_reason;         // why the user part is missing; empty: it is not
};

// "202 0x7f00 0x80 ... SP PC" of /proc/PID/task/TID/syscall; nullopt if it says "running".
struct CallLine {
  CurrentCall call;
  std::uint64_t sp = 0, pc = 0;
};
std::optional<CallLine> parse_call_line(std::string_view line);

}  // namespace tacho::record
