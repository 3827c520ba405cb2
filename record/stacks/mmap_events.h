// Mmap, fork, exec and exit records of the kernel, and the history of mappings that they make.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "format/base/cursor.h"
#include "format/records/event_attr.h"
#include "record/stacks/file_table.h"

namespace tacho::record {

// One such record.
struct MmapEvent {
  std::uint64_t time = 0;
  enum class Kind : std::uint8_t { Map, Fork, Exec, Exit } kind = Kind::Map;
  std::uint32_t process = 0, parent = 0;
  std::uint64_t start = 0, end = 0, offset = 0;
  MappedFile file;
};

// Appends the mmap, fork, exec and exit records of this event, in their order. Bytes that are no records
// end it.
void parse_mmap_events(format::Bytes records, const format::EventAttr& attr, std::vector<MmapEvent>& news);

// The latest mappings by process and address, with their modules. The oldest are dropped.

// Where a mapping begins.
struct MmapKey {
  std::uint32_t process = 0;
  std::uint64_t start = 0;  // address
  friend bool operator==(const MmapKey&, const MmapKey&) = default;
};

class MmapHistory {
 public:
  // It remembers `most` mappings.
  explicit MmapHistory(std::size_t most) : most_(most) {}

  void note(MmapKey place, std::uint32_t module);
  std::optional<std::uint32_t> module_at(MmapKey place) const;
  void forget(std::uint32_t process);
  void forget_modules(const std::unordered_set<std::uint32_t>& modules);

 private:
  struct Known {
    std::uint32_t module = 0;
    std::uint64_t sequence = 0;  // that of its turn
  };
  // A mapping that was forgotten and noted again has another turn; the first one is without effect then.
  struct Turn {
    MmapKey place;
    std::uint64_t sequence = 0;
  };

  std::size_t most_;
  std::unordered_map<std::uint32_t, std::unordered_map<std::uint64_t, Known>> known_;  // by process and start
  std::deque<Turn> turns_;                                                             // oldest first
  std::uint64_t last_turn_ = 0;
};

}  // namespace tacho::record
