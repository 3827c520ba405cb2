// LEB128, DWARF's variable-length numbers.
#pragma once

#include <cstdint>

#include "format/base/cursor.h"

namespace tacho::unwind {

struct Leb128 {
  std::uint64_t bits = 0;
  unsigned width = 0;  // number of bits that were encoded; those above 64 are ignored
  bool is_negative = false;
};

// Ends at the end of the bytes, since a failed cursor returns zeros.
inline Leb128 read_leb128(format::Cursor& in) {
  Leb128 number;
  for (unsigned shift = 0;; shift += 7) {
    const std::uint8_t byte = in.u8();
    if (shift < 64) number.bits |= std::uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80) != 0) continue;
    number.width = shift + 7;
    number.is_negative = (byte & 0x40) != 0;
    return number;
  }
}

inline std::uint64_t read_uleb128(format::Cursor& in) { return read_leb128(in).bits; }

inline std::int64_t read_sleb128(format::Cursor& in) {
  const Leb128 number = read_leb128(in);
  const bool extends = number.is_negative && number.width < 64;
  return static_cast<std::int64_t>(extends ? number.bits | (~std::uint64_t{0} << number.width) : number.bits);
}

}  // namespace tacho::unwind
