// Mappings of processes, from the kernel's mmap, fork, exec and exit records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bpf/programs/stack_maps.h"
#include "format/base/cursor.h"
#include "format/records/event_attr.h"
#include "record/stacks/file_table.h"

namespace tacho::record {

// One of these records.
struct MmapEvent {
  std::uint64_t time = 0;
  enum class Kind : std::uint8_t { Map, Fork, Exec, Exit } kind = Kind::Map;
  std::uint32_t process = 0, parent = 0;
  std::uint64_t start = 0, end = 0, offset = 0;
  MappedFile file;
};

// Appends the mmap, fork, exec and exit records of this event, in order. Stops at bytes that are no records.
void parse_mmap_events(format::Bytes records, const format::EventAttr& attr, std::vector<MmapEvent>& events);

// The start of a mapping.
struct MmapKey {
  std::uint32_t process = 0;
  std::uint64_t start = 0;  // address
  friend bool operator==(const MmapKey&, const MmapKey&) = default;
};

// The latest mappings by process and address, with their modules. The oldest are dropped.
class MmapHistory {
 public:
  // Keeps `most` mappings.
  explicit MmapHistory(std::size_t most) : most_(most) {}

  void note(MmapKey place, std::uint32_t module);
  std::optional<std::uint32_t> module_at(MmapKey place) const;
  void forget(std::uint32_t process);
  void forget_modules(const std::unordered_set<std::uint32_t>& modules);

 private:
  struct Known {
    std::uint32_t module = 0;
    std::uint64_t sequence = 0;  // of its turn
  };
  // A mapping that was dropped and added again has another turn; the first one is then ignored.
  struct Turn {
    MmapKey place;
    std::uint64_t sequence = 0;
  };

  std::size_t most_;
  std::unordered_map<std::uint32_t, std::unordered_map<std::uint64_t, Known>> known_;  // by process and start
  std::deque<Turn> turns_;                                                             // oldest first
  std::uint64_t last_turn_ = 0;
};

// Mapped code ranges of each process, from the kernel's records.
class CodeMaps {
 public:
  // Ascending, without overlaps.
  using Ranges = std::vector<tacho_code_range>;

  // `most`: ranges of one process. If anonymous code exceeds it (the kernel reports no munmap of a JIT), the
  // older half of that code is dropped; further ranges are ignored.
  explicit CodeMaps(std::size_t most = TACHO_MOST_RANGES_OF_PROCESS) : most_(most) {}

  // A process that ran before the recording, with its ranges; those beyond the maximum are ignored.
  void running(std::uint32_t process, Ranges ranges);
  // Times are from the records. Records older than the last fork or exec of their process are ignored,
  // because records of several CPUs are not strictly ordered.
  void map(std::uint32_t process, const tacho_code_range& range, std::uint64_t time);
  // The child gets the mappings of its parent; if the parent is unknown, none.
  void fork(std::uint32_t child, std::uint32_t parent, std::uint64_t time);
  void exec(std::uint32_t process, std::uint64_t time);
  void remove(std::uint32_t process);

  // The processes that changed since the last call, including removed ones.
  std::vector<std::uint32_t> take_changed();
  // Null: the process is unknown. Shared by a parent and its children until one of them changes.
  std::shared_ptr<const Ranges> ranges(std::uint32_t process) const;
  // The same at a time (0: now): before an exec, the ranges of the earlier program; else the current ones,
  // because mappings added since then seldom replaced code that ran then.
  struct AtTime {
    std::shared_ptr<const Ranges> ranges;  // null: unknown
    bool is_now = true;                    // the process still runs the same program, as far as is known
  };
  AtTime ranges_at(std::uint32_t process, std::uint64_t time) const;
  std::size_t size() const { return processes_.size(); }

 private:
  static constexpr std::size_t kMostFormer = 4;  // for a shell that runs env, which runs an interpreter
  // A program that the process ran before an exec; null ranges: unknown.
  struct Former {
    std::uint64_t since = 0, until = 0;
    std::shared_ptr<Ranges> ranges;
  };
  struct Process {
    std::shared_ptr<Ranges> ranges;
    std::uint64_t since = 0;
    std::vector<Former> former;            // oldest first
    std::deque<std::uint64_t> of_no_file;  // starts of anonymous code, oldest first
  };
  Process& process_of(std::uint32_t process);
  bool drop_older_code(Process& owner);

  std::size_t most_;
  std::unordered_map<std::uint32_t, Process> processes_;
  std::unordered_set<std::uint32_t> changed_;
};

}  // namespace tacho::record
