// Unwind information in the form of the GNU assembler's --gsframe (section .sframe, versions 1 and 2): for
// each range of code where the caller's frame and frame pointer are, and nothing else. x86-64.
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
  std::vector<tacho_unwind_row> rows;  // ascending; their `pc` counts from the start
};

// Limits against hostile sections.
struct SframeLimits {
  std::size_t most = std::size_t{1} << 22;  // functions, and rows of one of them
  std::function<bool()> stop = {};          // asked between functions and rows: true gives up
};

enum class SframeRead : std::uint8_t {
  Done,      // or not wanted any more
  Foreign,   // this is no such section, or one of another machine
  TooLarge,  // nothing was read, or up to the function that is
};

// The functions of a section that is mapped at `address`, ascending by their start. Functions that are
// damaged have no rows. `sink` says whether more are wanted.
SframeRead read_sframe(format::Bytes section, std::uint64_t address, const SframeLimits& limits,
                       const std::function<bool(const SframeFunction&)>& sink);

}  // namespace tacho::unwind
