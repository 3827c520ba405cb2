// Digest of a call chain, kept in place of its words.
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

// XXH3 with 128 bits and a random seed. The probability of a collision among a million chains is about 2^-89.
// XXH3 is not cryptographic; the seed keeps makers of captures from constructing collisions.
class ChainHash {
 public:
  explicit ChainHash(std::uint64_t seed);
  ChainDigest operator()(format::Bytes words) const;

 private:
  std::uint64_t seed_;
  alignas(64) std::array<std::byte, 192> secret_;  // made of the seed once: long chains need it
};

}  // namespace tacho::report
