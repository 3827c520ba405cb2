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

// What DWARF's numbers mean, as far as names depend on it, and how much of it is read of one file.

// Whether names in DWARF are also the linker's names, as in C; other languages (DW_LANG_*) mangle them.
bool names_are_the_linkers(int language);
// Whether an attribute of this form (DW_FORM_*) refers to the supplementary file.
bool needs_shared_part(unsigned form);

using AddressRanges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
// Merges adjacent ranges, as binutils does: the shortest range that covers an address owns it.
void add_range(AddressRanges& ranges, std::uint64_t start, std::uint64_t end);

// How much may still be read of a file, derived from its size. In a hostile file many entries can refer to
// one list, so a small file can describe any number of ranges, functions and rows.
struct DwarfBudget {
  std::size_t units = 0;       // some 500 bytes each, with libdw's part
  std::size_t functions = 0;   // some 150 bytes each
  std::size_t ranges = 0;      // entries of lists, each time that they are read
  std::size_t rows = 0;        // of line tables, some 50 bytes each, twice that while they are read
  std::size_t attributes = 0;  // of entries: some take no byte of the file, and libdw steps over each

  static DwarfBudget of(std::size_t bytes) {
    constexpr std::size_t kAlways = std::size_t{1} << 18;
    return {kAlways / 16 + bytes / 128, kAlways + bytes / 8, 4 * kAlways + bytes, kAlways + bytes / 32,
            64 * kAlways + 4 * bytes};
  }
};

// Iterator over the entries of a unit.

// Visits the entries in file order, in linear time at any depth. libdw's own step over an entry with children
// visits all of them again at each level, where the compiler wrote no DW_AT_sibling.
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

class DwarfFile {
 public:
  // The file stays the caller's. The error does not name it.
  static Result<DwarfFile> open(const format::Fd& file);
  DwarfFile(DwarfFile&&) noexcept = default;
  DwarfFile& operator=(DwarfFile&&) = delete;  // what it has would end in the wrong order
  ~DwarfFile() = default;

  Dwarf* get() const { return dwarf_.get(); }
  const DebugImage& image() const { return image_; }
  // To be given before anything is looked up; without it what stands in that file is missing.
  std::optional<SharedPart> shared_part() const;
  Result<> use_shared_part(const format::Fd& file);
  bool has_shared_part() const { return shared_ != nullptr; }

  // The attribute (DW_AT_*) as a text; empty without it, and when it stands in a part that is not here.
  std::string_view text(Dwarf_Die& die, unsigned name) const;
  // The entry that the attribute refers to; false likewise.
  bool follow(Dwarf_Die& die, unsigned name, Dwarf_Die& target) const;

 private:
  struct End {
    void operator()(Dwarf* dwarf) const noexcept { dwarf_end(dwarf); }
  };
  DwarfFile() = default;
  static Result<> open_into(const format::Fd& file, DebugImage& image, std::unique_ptr<Dwarf, End>& dwarf);
  bool may_read(unsigned form) const;

  DebugImage image_, shared_image_;
  std::unique_ptr<Dwarf, End> shared_;
  std::unique_ptr<Dwarf, End> dwarf_;  // ended before what it refers to
};

// The reason of libdw's last failure.
Error libdw_error();

}  // namespace tacho::symbolize
