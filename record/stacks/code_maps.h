// Where code is mapped in each process, as the kernel's records tell it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bpf/programs/stack_maps.h"

namespace tacho::record {

class CodeMaps {
 public:
  // Ascending, and none over another.
  using Ranges = std::vector<tacho_code_range>;

  // `most`: ranges of one process; what would make them more is not noted.
  explicit CodeMaps(std::size_t most = TACHO_MOST_RANGES_OF_PROCESS) : most_(most) {}

  // Times are those of the records; what is older than the last fork or exec of its process is no news, since
  // the records of several CPUs come in no strict order.
  void map(std::uint32_t process, const tacho_code_range& range, std::uint64_t time);
  // The child has the mappings of its parent.
  void fork(std::uint32_t child, std::uint32_t parent, std::uint64_t time);
  void exec(std::uint32_t process, std::uint64_t time);
  void remove(std::uint32_t process);

  // Processes that changed since the last call, the removed ones included.
  std::vector<std::uint32_t> take_changed();
  // Null when nothing is known of the process. Shared by a parent and its children until one changes.
  std::shared_ptr<const Ranges> ranges(std::uint32_t process) const;
  // The same as it was at a time: before its last exec those of the program that it was. Else they are those
  // of now: what was mapped since did not lie over code that ran then, mostly.
  std::shared_ptr<const Ranges> ranges_at(std::uint32_t process, std::uint64_t time) const;
  std::size_t size() const { return processes_.size(); }

 private:
  struct Process {
    std::shared_ptr<Ranges> ranges;
    std::uint64_t since = 0;
    std::shared_ptr<Ranges> before;  // its last exec
  };
  Process& process_of(std::uint32_t process);

  std::size_t most_;
  std::unordered_map<std::uint32_t, Process> processes_;
  std::unordered_set<std::uint32_t> changed_;
};

}  // namespace tacho::record
