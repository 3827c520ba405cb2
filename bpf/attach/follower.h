// The follower, a thread filter for BPF programs: an array with one byte for each tid of the initial pid
// namespace (pid_numbers.h), updated by small programs on fork, rename and exec. BPF objects look threads up
// in it before expensive work (tacho/emit.h); for objects that do not, the recorder drops events of other
// threads.
#pragma once

#include <cstdint>
#include <vector>

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
// Whether threads that a followed thread starts are followed.
enum class Children : std::uint8_t { Ignored, Followed };

// The inode of this process's pid namespace, where tids differ from the kernel's; 0: it is the initial one.
std::uint32_t pid_namespace_inode();
inline bool is_in_pid_namespace() { return pid_namespace_inode() != 0; }

// Appends code that returns `result` if the current thread is not followed. Clobbers r0 to r5, r7, r8 and the
// first word of the stack.
void return_unless_followed(Assembler& program, int table, std::int32_t result = 0);

class Follower {
 public:
  // Loads and attaches the programs; no thread is followed yet. An error: the kernel has no BTF or no
  // mmapable arrays (before 5.5), or the rights are missing.
  static Result<Follower> create(Children children);

  // The map, for objects.
  int table_fd() const { return table_.get(); }
  void set_thread(int thread, Followed state);
  // The state of a thread; after its end, until its tid is reused.
  Followed thread_state(int thread) const;

 private:
  Follower() = default;
  Result<> make_table();
  Result<> load_programs(Children children);

  format::Fd table_;
  format::Mapping states_;
  std::vector<format::Fd> programs_, links_;  // closed before the table
};

}  // namespace tacho::bpf
