// What DWARF's numbers mean, as far as names depend on it, and how much of it is read of one file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tacho::symbolize {

// C and its like (DW_LANG_*) write names into DWARF as the linker has them; other languages mangle.
bool names_are_the_linkers(int language);
// True when what has this form (DW_FORM_*) stands in the file that several files share.
bool needs_shared_part(unsigned form);

using AddressRanges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
// Ranges that meet become one, as binutils has it: the shortest range decides who an address belongs to.
void add_range(AddressRanges& ranges, std::uint64_t start, std::uint64_t end);

// How much may still be read of one file, by its size: an honest one never has more. Several entries can name
// one list, and then a small file stands for any number of ranges, functions and rows.
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

}  // namespace tacho::symbolize
