// What stands for the words of a call chain where the words themselves are not kept.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "format/base/cursor.h"

namespace tacho::report {

// XXH3's hash of 128 bits.
struct ChainDigest {
  std::uint64_t low = 0, high = 0;
  bool operator==(const ChainDigest&) const = default;
};

// By chance, two of a million chains share a digest with a probability of about 2^-89. XXH3 is no
// cryptographic hash: nobody has proved that two chains with one digest cannot be made on purpose. So it
// begins with a random number that nobody who makes a capture can foresee.
class ChainHash {
 public:
  explicit ChainHash(std::uint64_t seed);
  ChainDigest operator()(format::Bytes words) const;

 private:
  std::uint64_t seed_;
  alignas(64) std::array<std::byte, 192> secret_;  // made of the seed once: long chains need it
};

}  // namespace tacho::report
