// Every thread as it is now: its state, and its stack read while ptrace stops it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "record/events/target.h"
#include "record/host/foreign_reader.h"
#include "record/now/thread_stack.h"

namespace tacho::record {

// Every thread now: its state, its kernel stack, and a copy of its registers and its user stack, which
// tacho-report unwinds.
//
// A blocked thread is not stopped: BPF's task iterator provides its registers, its stack is read from
// outside, and the iterator shows afterwards whether it ran meanwhile. Threads that are never blocked long
// enough, and all threads if there is no iterator, are stopped by ptrace, one at a time, while registers and
// stack are copied: for some tens of microseconds.
struct ThreadsNow {
  std::vector<ThreadStack> threads;
  std::vector<std::uint32_t> processes;      // each once
  std::chrono::nanoseconds between_looks{};  // at locks; 0: no thread waits for a lock with an owner
  std::vector<std::string> notes;            // messages for the user about fallbacks
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

// The threads of the target, without this process's own, and the threads that have a lock for which one of
// them waits. `stop`: a signal came.
Result<ThreadsNow> threads_now(const Target& target, Looking looking,
                               const std::shared_ptr<ForeignReader>& reader,
                               const std::function<bool()>& stop);

// Kernel addresses from the lines of /proc/PID/task/TID/stack: "[<0>] futex_wait+0x60/0x90". `start_of`: the
// address of a function; 0: unknown, and the line is skipped.
std::vector<std::uint64_t> parse_kernel_stack(
    std::string_view lines, const std::function<std::uint64_t(std::string_view function)>& start_of);

}  // namespace tacho::record
