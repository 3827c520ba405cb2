// A file's DWARF, opened by libdw, with its supplementary file (dwz); limits of how much is read, and an
// iterator over its entries.
#pragma once

#include <elfutils/libdw.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "symbolize/elf/debug_image.h"

namespace tacho::symbolize {

// Whether the language (DW_LANG_*) does not mangle names, as C: then DW_AT_name is the linkage name.
bool has_unmangled_names(int language);

struct DwarfEnd {
  void operator()(Dwarf* dwarf) const noexcept { dwarf_end(dwarf); }
};
using OwnedDwarf = std::unique_ptr<Dwarf, DwarfEnd>;

using AddressRanges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
// Adds a range, and merges adjacent ones, as binutils does. This matters since the shortest range that covers
// an address owns it.
void add_range(AddressRanges& ranges, std::uint64_t start, std::uint64_t end);

// Limits of what may still be read from a file, derived from its size. In a hostile file many entries can
// refer to one list, so that a small file describes any number of ranges, functions and rows.
struct DwarfBudget {
  std::size_t units = 0;       // about 500 bytes of memory each, libdw's included
  std::size_t functions = 0;   // about 150 bytes each
  std::size_t ranges = 0;      // list entries, counted at each reading
  std::size_t rows = 0;        // of line tables, about 50 bytes each, twice that while they are read
  std::size_t attributes = 0;  // of entries; one without bytes in the file still takes time in libdw

  static DwarfBudget of(std::size_t bytes) {
    constexpr std::size_t kAlways = std::size_t{1} << 18;
    return {kAlways / 16 + bytes / 128, kAlways + bytes / 8, 4 * kAlways + bytes, kAlways + bytes / 32,
            64 * kAlways + 4 * bytes};
  }
};

// The attribute (DW_AT_*) of `die` as a number; nothing: there is none, or it is no number.
std::optional<Dwarf_Word> number_of(Dwarf_Die& die, unsigned name);

// The cost of visiting an entry, in attributes.
std::size_t cost_of(Dwarf_Die& die);

// Calls `visit` with the children of an entry, at most `most`, until it returns false.
template <class Seen>
void each_child(Dwarf_Die parent, int most, Seen&& visit) {
  Dwarf_Die child{};
  bool is_there = dwarf_child(&parent, &child) == 0;
  for (; is_there && most > 0 && visit(child); --most) is_there = dwarf_siblingof(&child, &child) == 0;
}

// Iterator over the entries of a unit in file order, in linear time at any depth. dwarf_siblingof() of an
// entry with children visits all of them again at each level, if the compiler wrote no DW_AT_sibling.
class DieIterator {
 public:
  static constexpr std::size_t kDeepest = std::size_t{1} << 16;  // levels; compilers stay below some hundred

  explicit DieIterator(const Dwarf_Die& unit) : levels_{unit} {}
  // False at the end, or where the DWARF is damaged.
  bool next_die();
  Dwarf_Die& die() { return levels_.back(); }
  std::size_t depth() const { return levels_.size() - 2; }  // 0 right below the unit
  bool is_too_deep() const { return levels_.size() > kDeepest; }
  bool has_cycle() const { return has_cycle_; }

 private:
  bool step();

  std::vector<Dwarf_Die> levels_;  // the unit, then an entry for each level; the last is the current entry
  bool has_cycle_ = false;
};

// A file's DWARF, with its supplementary file.
class DwarfFile {
 public:
  // The caller keeps the file open. The error does not name it.
  static Result<DwarfFile> open(const format::Fd& file);
  DwarfFile(DwarfFile&&) noexcept = default;
  DwarfFile& operator=(DwarfFile&&) = delete;  // it would destroy the members in the wrong order
  ~DwarfFile() = default;

  Dwarf* get() const { return dwarf_.get(); }
  const DebugImage& image() const { return image_; }
  // The supplementary file that this file names. Call use_supplementary_file() before the first lookup;
  // without it strings and entries of that file are missing.
  std::optional<SupplementaryFile> supplementary_file() const;
  Result<> use_supplementary_file(const format::Fd& file);
  bool has_supplementary_file() const { return supplementary_ != nullptr; }

  // The attribute (DW_AT_*) as a string; empty: it is missing, or in a supplementary file that is not open.
  std::string_view text(Dwarf_Die& die, unsigned name) const;
  // The entry that the attribute refers to; false: as for text().
  bool follow(Dwarf_Die& die, unsigned name, Dwarf_Die& target) const;

 private:
  DwarfFile() = default;
  static Result<> open_into(const format::Fd& file, DebugImage& image, OwnedDwarf& dwarf);
  bool may_read(unsigned form) const;

  DebugImage image_, supplementary_image_;
  OwnedDwarf supplementary_;
  OwnedDwarf dwarf_;  // destroyed before the members that it refers to
};

// libdw's last error.
Error libdw_error();

}  // namespace tacho::symbolize
