// XXH3 of 64 bits: the digest wherever tacho chooses one. It is no protection against a forger.
#pragma once

#include <cstdint>

#include "format/base/cursor.h"

namespace tacho::format {

std::uint64_t digest(Bytes bytes, std::uint64_t seed = 0);

}  // namespace tacho::format
