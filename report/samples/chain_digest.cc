#include "report/samples/chain_digest.h"

#define XXH_INLINE_ALL  // most chains are short: calling the library would cost as much as hashing them
#include <xxhash.h>

namespace tacho::report {

ChainHash::ChainHash(std::uint64_t seed) : seed_(seed) {
  static_assert(sizeof secret_ == XXH3_SECRET_DEFAULT_SIZE);
  XXH3_generateSecret_fromSeed(secret_.data(), seed_);
}

ChainDigest ChainHash::operator()(format::Bytes words) const {
  const XXH128_hash_t hash =
      XXH3_128bits_withSecretandSeed(words.data(), words.size(), secret_.data(), secret_.size(), seed_);
  return {hash.low64, hash.high64};
}

}  // namespace tacho::report
