// The threads that a recording follows, known in the kernel: a table with a byte for each thread number,
// which two small programs of ours keep true while threads start others and programs are executed. Objects
// ask it before they do anything dear (tacho/emit.h), and the recorder where they did not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "bpf/attach/raw_program.h"
#include "format/file.h"
#include "format/result.h"

namespace tacho::bpf {

// What the table says of a thread.
enum class Followed : std::uint8_t {
  No = 0,
  Yes = 1,
  FromExec = 2,  // once it executes a program
};
// Of what a followed thread starts.
enum class Children : std::uint8_t { Ignored, Followed };

// Whether this is a PID namespace, where threads have other numbers than in the kernel.
bool is_in_pid_namespace();

// Appends to a program: it ends with `result` where the current thread is not followed by the table. Spoils
// r0 to r5, r7, r8 and the first word of the stack.
void leave_unless_followed(Assembler& program, int table, std::int32_t result = 0);

class Follower {
 public:
  // Programs loaded and attached, nobody followed yet. Fails where the kernel has no BTF, no mapped arrays
  // (before 5.5) or no right for us, and in a PID namespace, where thread numbers are not the kernel's own.
  static Result<Follower> create(Children children);

  // The table as a map for objects.
  int table_fd() const { return table_.get(); }
  void set(int thread, Followed state);
  // What is known of a thread that has ended stays until its number is given to another one.
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
