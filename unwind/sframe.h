// Parser of .sframe (GNU assembler --gsframe, versions 1 and 2): for each range of code, the places of the
// CFA and the saved frame pointer. x86-64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "format/base/cursor.h"
#include "unwind/unwind_row.h"

namespace tacho::unwind {

struct SframeFunction {
  std::uint64_t start = 0, end = 0;    // ELF addresses
  std::vector<tacho_unwind_row> rows;  // ascending; `pc` is relative to `start`
};

// Limits against hostile sections.
struct SframeLimits {
  std::size_t most = std::size_t{1} << 22;  // functions, and rows of one of them
  std::function<bool()> stop = {};          // polled; true ends it
};

enum class SframeRead : std::uint8_t {
  Done,      // or stopped
  Foreign,   // not such a section, or of another machine
  TooLarge,  // a limit was exceeded
};

// Calls `sink` for the functions of a section with the address `address`, ascending by start, until it
// returns false. Damaged functions have no rows.
SframeRead read_sframe(format::Bytes section, std::uint64_t address, const SframeLimits& limits,
                       const std::function<bool(const SframeFunction&)>& sink);

}  // namespace tacho::unwind
