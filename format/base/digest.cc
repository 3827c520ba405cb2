#include "format/base/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tacho::format {

std::uint64_t digest(Bytes bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace tacho::format
