// Lists threads with BPF's task iterator: state, kernel stack and user registers of running and blocked
// threads, without stopping them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bpf/programs/thread_record.h"
#include "format/base/cursor.h"
#include "format/base/result.h"

namespace tacho::bpf {

struct ListedThread {
  std::uint32_t pid = 0, tid = 0;      // in this process's pid namespace
  std::uint32_t kernel_tid = 0;        // in the initial one
  std::uint32_t state = 0, flags = 0;  // task_struct's
  bool is_on_cpu = false;              // then registers are stale, and there is no kernel stack
  bool has_memory = false;             // false: a kernel thread
  std::uint64_t switches = 0;          // context switches
  std::array<std::uint64_t, TACHO_THREAD_REGISTERS> registers{};  // struct tacho_registers
  std::vector<std::uint64_t> kernel;                              // leaf first
  std::string comm;
};

// Parses the iterator's output: records, of which the last may be truncated.
std::vector<ListedThread> parse_thread_records(format::Bytes records);

class ThreadList {
 public:
  // `ids`: of processes or threads; empty for TACHO_ALL_THREADS. An error: the kernel is older than
  // Linux 5.15, or the rights are missing.
  static Result<ThreadList> load(tacho_thread_choice choice, std::span<const int> ids);
  ThreadList(ThreadList&&) noexcept;
  ThreadList& operator=(ThreadList&&) noexcept;
  ~ThreadList();

  // Lists the chosen threads.
  Result<std::vector<ListedThread>> read_threads() const;

 private:
  struct State;
  explicit ThreadList(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The compiled programs of this list and of PidNumbers (attach/pid_numbers.h); empty: tacho was built without
// clang.
format::Bytes threads_object();
format::Bytes pid_numbers_object();

}  // namespace tacho::bpf
