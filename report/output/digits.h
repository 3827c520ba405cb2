// Digits of numbers, eight at a time in one word: no loop and no store that is read back at once. printf's
// way of writing them one by one from the end costs more than all else in a line of numbers.
//
// The word's lowest byte is the first character, on every machine; store_text() keeps it so.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tacho::report {

inline constexpr std::size_t kWordDigits = 8;
inline constexpr std::uint64_t kEightDigits = 100'000'000;  // the least number that has nine

inline constexpr std::uint64_t every_byte(std::uint8_t byte) { return byte * 0x0101'0101'0101'0101u; }

// `value` below kEightDigits as eight bytes from 0 to 9. Halves, then quarters, then single digits are split
// off side by side; a multiplication and a shift divide exactly as long as the numbers are this small.
inline std::uint64_t eight_decimal_digits(std::uint32_t value) {
  const std::uint64_t fours = value / 10'000 | std::uint64_t{value % 10'000} << 32;
  const std::uint64_t hundreds = (fours * 10'486 >> 20) & 0x0000'007f'0000'007f;
  const std::uint64_t twos = hundreds | (fours - hundreds * 100) << 16;
  const std::uint64_t tens = (twos * 103 >> 10) & 0x000f'000f'000f'000f;
  return tens | (twos - tens * 10) << 8;
}

// The same for sixteens, as text: "0000002a".
inline std::uint64_t eight_hex_digits(std::uint32_t value) {
  std::uint64_t digits = value >> 24 | (value >> 8 & 0xff00) | (value & 0xff00) << 8 | value << 24;
  digits = (digits | digits << 16) & 0x0000'ffff'0000'ffff;
  digits = (digits | digits << 8) & 0x00ff'00ff'00ff'00ff;
  digits = (digits >> 4 | digits << 8) & every_byte(0x0f);
  const std::uint64_t letters = (digits + every_byte(6)) >> 4 & every_byte(1);
  return digits + every_byte('0') + letters * ('a' - '0' - 10);
}

// Of eight digits: how many zeros stand before the first other one, which the last is taken for.
inline std::size_t leading_zeros(std::uint64_t digits) {
  return static_cast<std::size_t>(std::countr_zero(digits | std::uint64_t{1} << 56)) / 8;
}

// Writes all eight characters of a word.
inline void store_text(char* to, std::uint64_t text) {
  char bytes[kWordDigits];
  std::memcpy(bytes, &text, sizeof bytes);
  if constexpr (std::endian::native == std::endian::big) std::reverse(bytes, bytes + kWordDigits);
  std::memcpy(to, bytes, sizeof bytes);
}

}  // namespace tacho::report
