// The cause of a row of a thread's time: what it does on the CPU, or what it waits for.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "report/profile/function.h"
#include "report/profile/function_table.h"
#include "report/profile/wall_times.h"
#include "report/samples/session.h"
#include "report/views/why/wait_facts.h"

namespace tacho::report {

enum class Cause : std::uint8_t {
  Cpu,
  Spin,       // on the CPU in a loop around a lock
  Syscall,    // on the CPU in system calls
  Fork,       // processes that live for a moment
  Runnable,   // others had the CPU
  Throttled,  // the cgroup's CPU quota was used up
  Lock,       // of a program
  Condition,  // or a semaphore: threads that wait for it give it back to each other
  KernelLock,
  Disk,
  Network,
  Fault,  // page faults: handled, or waiting for the disk
  Child,
  Timer,
  Pipe,     // it is full
  Stopped,  // by a signal or a debugger
  Other,
  // The thread waits for work; none of these is a finding.
  IdlePoll,       // epoll, poll, select
  IdleSocket,     // accept, or a request of the other side
  IdleCondition,  // a condition, a semaphore, a join
  IdleInput,      // a pipe or a terminal
  IdleSignal,
  IdleChild,   // a child process that is recorded too
  IdleTimer,   // of a thread that waits for points in time only
  IdleKernel,  // a kernel thread
  Unknown,     // no event shows what the thread did
};
inline bool is_idle(Cause cause) { return cause >= Cause::IdlePoll && cause <= Cause::IdleKernel; }
// "lock", "IdlePoll" is "poll"
std::string_view name_of(Cause cause);

// A frame of a call chain.
struct NamedFrame {
  std::string_view name;  // "[unknown]" without a symbol
  bool is_kernel = false;
  bool is_library = false;  // of the C or C++ library or a language's runtime: no code of the program
  bool is_of_c = false;     // of the C library
  bool operator==(const NamedFrame&) const = default;
};

// Names of call chains, each looked up once.
class NamedChains {
 public:
  explicit NamedChains(Session& session) : session_(&session), functions_(session) {}

  // Leaf first, inlined calls too. Valid until the next call.
  std::span<const NamedFrame> frames(const Stack& stack);
  // Of the first `count` locations only.
  std::span<const NamedFrame> frames(std::span<const LocationId> locations);
  // Whether a function of the program is there: not of libraries and the kernel.
  bool is_of_program(LocationId location);
  // The function whose code is there, as annotate names it: no inlined call. Empty: no file has its code.
  std::string_view code_at(LocationId location);
  // What is `before` bytes before a data address: "cache_lock", "cache+0x28"; without a symbol "0x55...".
  std::string variable(LocationId location, std::uint64_t before);
  // The condition variable or semaphore, whose futex is somewhere in it; without a symbol empty.
  std::string condition(LocationId futex);

 private:
  const std::vector<NamedFrame>& at(LocationId location);
  std::string_view name_of(const Function& function);
  Session* session_;
  FunctionTable functions_;
  std::unordered_map<LocationId, std::vector<NamedFrame>> known_;
  std::set<std::string, std::less<>> changed_names_;
  std::vector<NamedFrame> answer_;
};

// The innermost function of the program itself: not of libraries and the kernel. Without one that of another
// library than C's, the innermost user function, or the innermost frame; empty: there are no frames.
std::string_view own_function(std::span<const NamedFrame> frames);
// The user part of a call chain, root first: functions of the program, and the library function that the
// innermost one calls. Without functions of the program all.
std::vector<std::string> shown_chain(std::span<const NamedFrame> frames);
// The system call in which the kernel's frames are, "read"; empty: none.
std::string_view call_of(std::span<const NamedFrame> frames);

// `frames`: of the row's stack. Timers are Cause::Timer: whether a thread waits for nothing else is seen
// later.
Cause cause_of(WallState state, std::span<const NamedFrame> frames, const WaitFacts& facts);

}  // namespace tacho::report
