// Computes the size of a line table before libdw decodes it: each byte of a line number program can be a row,
// for which libdw takes a hundred bytes, and each byte of its header a file, which takes as much.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "format/base/cursor.h"
#include "symbolize/elf/debug_image.h"

namespace tacho::symbolize {

// The rows of the table whose program begins at `offset` of `section` (.debug_line, DWARF 2 to 5), and the
// files and folders of its header, which take as much. Of a program that is damaged: those before the damage.
std::uint64_t count_line_rows(format::Bytes section, std::uint64_t offset, std::endian order);

// The line tables of one file, each counted once: units may share one.
class LineTables {
 public:
  LineTables() = default;
  // `image` must outlive it.
  explicit LineTables(const DebugImage& image);

  // How many rows reading the table at `offset` takes: none when it was read already.
  std::uint64_t rows_to_read(std::uint64_t offset) const;
  void set_read(std::uint64_t offset) { read_.insert(offset); }

 private:
  format::Bytes section_;
  std::vector<std::byte> unpacked_;  // what section_ points to, of a .zdebug_line
  std::endian order_ = std::endian::little;
  std::unordered_set<std::uint64_t> read_;
};

}  // namespace tacho::symbolize
