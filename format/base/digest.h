// XXH3 with 64 bits: the digest of tacho's own formats and tables. Not cryptographic.
#pragma once

#include <cstdint>

#include "format/base/cursor.h"

namespace tacho::format {

std::uint64_t digest(Bytes bytes, std::uint64_t seed = 0);

}  // namespace tacho::format
