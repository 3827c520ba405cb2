// Makes a reduced copy of an ELF file for the capture: code, symbols and call frame information only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"

namespace tacho::symbolize {

// A copy has the mapped parts at their file offsets, then the symbol table, and call frame information that
// is not mapped. Other sections are empty. An error, which does not name the file: it is not a 64-bit file in
// this machine's byte order, or the copy would have more than `most` bytes.
Result<std::vector<std::byte>> stripped_copy(const format::Fd& file, std::uint64_t most);

}  // namespace tacho::symbolize
