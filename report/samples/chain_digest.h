// What stands for the words of a call chain where the words themselves are not kept.
#pragma once

#include <cstdint>

#include "format/base/cursor.h"

namespace tacho::report {

// XXH3's hash of 128 bits.
struct ChainDigest {
  std::uint64_t low = 0, high = 0;
  bool operator==(const ChainDigest&) const = default;
};

// By chance, two of a million chains share a digest with a probability of about 2^-89. XXH3 is no
// cryptographic hash: nobody has proved that two chains with one digest cannot be made on purpose. So the
// seed must be a number that whoever made the capture cannot foresee.
ChainDigest chain_digest(format::Bytes words, std::uint64_t seed);

}  // namespace tacho::report
