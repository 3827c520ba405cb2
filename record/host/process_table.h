// Who the processes are that run when a recording begins: what no record of perf says of them. A reader
// elsewhere finds the container by it, whose processes have other numbers inside than outside.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tacho::record {

class ProcessTable {
 public:
  // `proc`: the directory, "/proc" outside of tests.
  explicit ProcessTable(std::string proc = "/proc");
  // A line for the process; nothing when it has ended, or there are very many already.
  void add(int process);
  // Lines of fields between tabs, the first one names them (docs/capture-format.md, attachment "processes").
  const std::string& text() const { return text_; }

 private:
  std::string proc_, text_;
  std::size_t count_ = 0;
};

// The numbers of a process in its namespaces, from the outermost to its own: "812,7,1" of the line NSpid in
// /proc/PID/status; empty when there is none.
std::string numbers_in_namespaces(std::string_view status);
// When it was started, in ns after the boot, of /proc/PID/stat; 0: not to be read.
unsigned long long start_of(std::string_view stat, long ticks_a_second);
// Its path below the mount of the hierarchy that perf events go by, of /proc/PID/cgroup.
std::string cgroup_path(std::string_view lines);

}  // namespace tacho::record
