// Mapped code ranges of each process, from the kernel's records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
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

  // `most`: ranges of one process. Where anonymous code makes them more (the kernel reports no munmap of a
  // JIT) the older half of it goes; further ones are not noted.
  explicit CodeMaps(std::size_t most = TACHO_MOST_RANGES_OF_PROCESS) : most_(most) {}

  // A process that ran before: its ranges are not known yet; more than the most are not noted.
  void running(std::uint32_t process, Ranges ranges);
  // Times are the records'; what is older than the last fork or exec of its process is ignored, since the
  // records of several CPUs come in no strict order.
  void map(std::uint32_t process, const tacho_code_range& range, std::uint64_t time);
  // The child has the mappings of its parent; of an unknown parent, none.
  void fork(std::uint32_t child, std::uint32_t parent, std::uint64_t time);
  void exec(std::uint32_t process, std::uint64_t time);
  void remove(std::uint32_t process);

  // Processes that changed since the last call, the removed ones included.
  std::vector<std::uint32_t> take_changed();
  // Null when nothing is known of the process. Shared by a parent and its children until one changes.
  std::shared_ptr<const Ranges> ranges(std::uint32_t process) const;
  // The same as it was at a time (0: now): before an exec the ranges of the earlier program. Else the
  // current ones: what was mapped since did mostly not replace code that ran then.
  struct AtTime {
    std::shared_ptr<const Ranges> ranges;  // null when nothing is known
    bool is_now = true;                    // it is the same program still, as far as is known
  };
  AtTime ranges_at(std::uint32_t process, std::uint64_t time) const;
  std::size_t size() const { return processes_.size(); }

 private:
  static constexpr std::size_t kMostFormer = 4;  // a shell's wrapper of an env of an interpreter
  // A program that the process was until it ran another one; null ranges: not known.
  struct Former {
    std::uint64_t since = 0, until = 0;
    std::shared_ptr<Ranges> ranges;
  };
  struct Process {
    std::shared_ptr<Ranges> ranges;
    std::uint64_t since = 0;
    std::vector<Former> former;            // oldest first
    std::deque<std::uint64_t> of_no_file;  // where such code begins, oldest first
  };
  Process& process_of(std::uint32_t process);
  bool drop_older_code(Process& owner);

  std::size_t most_;
  std::unordered_map<std::uint32_t, Process> processes_;
  std::unordered_set<std::uint32_t> changed_;
};

}  // namespace tacho::record
