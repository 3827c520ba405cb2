// The entries of a unit of DWARF one after another.
#pragma once

#include <elfutils/libdw.h>

#include <cstddef>
#include <vector>

namespace tacho::symbolize {

// Walks a unit's tree of entries in the order they stand in the file, in time linear in them however deep
// they lie: libdw's own step over an entry with children looks at all of them again, at each level, where the
// compiler left no shortcut.
class DieWalk {
 public:
  static constexpr std::size_t kDeepest = std::size_t{1} << 16;  // levels; compilers stay below some hundred

  explicit DieWalk(const Dwarf_Die& unit) : levels_{unit} {}
  // False at the end, and where the walk cannot go on.
  bool next();
  Dwarf_Die& die() { return levels_.back(); }
  std::size_t depth() const { return levels_.size() - 2; }  // 0 right below the unit
  bool is_too_deep() const { return levels_.size() > kDeepest; }
  bool leads_back() const { return leads_back_; }

 private:
  bool step();

  std::vector<Dwarf_Die>
      levels_;  // the unit, then an entry for each level; the last one is where the walk is
  bool leads_back_ = false;
};

}  // namespace tacho::symbolize
