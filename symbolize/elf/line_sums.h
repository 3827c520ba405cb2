// MD5 sums of source files in the line tables of DWARF 5 (DW_LNCT_MD5), which clang writes and libdw does not
// give.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/cursor.h"
#include "symbolize/files/source_files.h"

namespace tacho::symbolize {

class LineSums {
 public:
  struct Sections {
    format::Bytes lines, line_texts, texts;  // .debug_line, .debug_line_str, .debug_str
    std::endian order = std::endian::native;
  };
  LineSums() = default;
  // Reads the headers of all tables; ends at damage.
  explicit LineSums(const Sections& sections);

  // The sums of a file, with its folder as libdw has it (dwarf_linesrc); empty: there is none.
  const std::vector<Md5>& sums_of(std::string_view path) const;

 private:
  void read_table(format::Cursor in, const Sections& sections);

  std::unordered_map<std::uint64_t, std::vector<Md5>> by_path_;  // by the path's digest
  std::vector<Md5> none_;
};

}  // namespace tacho::symbolize
