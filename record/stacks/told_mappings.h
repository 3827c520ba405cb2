// What the kernel's records told of mappings last: which module's code lies where, by process. The oldest go
// first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace tacho::record {

// Where a mapping begins.
struct MappingPlace {
  std::uint32_t process = 0;
  std::uint64_t start = 0;  // address
  friend bool operator==(const MappingPlace&, const MappingPlace&) = default;
};

class ToldMappings {
 public:
  // It remembers `most` mappings.
  explicit ToldMappings(std::size_t most) : most_(most) {}

  void note(MappingPlace place, std::uint32_t module);
  std::optional<std::uint32_t> module_at(MappingPlace place) const;
  void forget(std::uint32_t process);
  void forget_modules(const std::unordered_set<std::uint32_t>& modules);

 private:
  struct Told {
    std::uint32_t module = 0;
    std::uint64_t sequence = 0;  // that of its turn
  };
  // A mapping that was forgotten, and told of anew, has another turn; the first one is nobody's then.
  struct Turn {
    MappingPlace place;
    std::uint64_t sequence = 0;
  };

  std::size_t most_;
  std::unordered_map<std::uint32_t, std::unordered_map<std::uint64_t, Told>> told_;  // by process and start
  std::deque<Turn> turns_;                                                           // oldest first
  std::uint64_t last_turn_ = 0;
};

}  // namespace tacho::record
