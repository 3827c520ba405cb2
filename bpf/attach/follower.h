// Thread filter of BPF programs: an array with one byte for each thread id, updated by two small programs on
// fork and exec. BPF objects look threads up in it before they do anything expensive (tacho/emit.h); for
// objects that do not, the recorder drops events of other threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "bpf/attach/raw_program.h"
#include "format/base/file.h"
#include "format/base/result.h"

namespace tacho::bpf {

// State of a thread in the table.
enum class Followed : std::uint8_t {
  No = 0,
  Yes = 1,
  FromExec = 2,  // once it executes a program
};
// State of threads that a followed thread starts.
enum class Children : std::uint8_t { Ignored, Followed };

// Whether this is a PID namespace, where threads have other numbers than in the kernel.
bool is_in_pid_namespace();

// Appends the lookup to a program, which returns `result` where the current thread is not followed. Clobbers
// r0 to r5, r7, r8 and the first word of the stack.
void leave_unless_followed(Assembler& program, int table, std::int32_t result = 0);

class Follower {
 public:
  // Loads and attaches the programs; no thread is followed yet. Fails where the kernel has no BTF or no
  // mapped arrays (before 5.5), without the rights, and in a PID namespace, where thread numbers are not
  // the kernel's own.
  static Result<Follower> create(Children children);

  // The table as a map for objects.
  int table_fd() const { return table_.get(); }
  void set(int thread, Followed state);
  // The state of a thread that has ended stays until its number is used again.
  Followed state(int thread) const;

 private:
  Follower() = default;
  Result<> make_table();
  Result<> load_programs(Children children);

  format::Fd table_;
  format::Mapping states_;
  // Attached while these are open; closed before the table is.
  format::Fd fork_program_, exec_program_, fork_link_, exec_link_;
};

}  // namespace tacho::bpf
