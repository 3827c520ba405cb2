#include "report/samples/chain_digest.h"

#define XXH_INLINE_ALL  // most chains are short: calling the library would cost as much as hashing them
#include <xxhash.h>

namespace tacho::report {

ChainDigest chain_digest(format::Bytes words, std::uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(words.data(), words.size(), seed);
  return {hash.low64, hash.high64};
}

}  // namespace tacho::report
