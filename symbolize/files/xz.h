// Bytes that were packed with xz, as .gnu_debugdata sections are; and the checksum that comes with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"

namespace tacho::symbolize {

// The unpacked bytes; an error when they are more than `limit` or when `packed` is damaged.
Result<std::vector<std::byte>> unpack_xz(format::Bytes packed, std::uint64_t limit);

// The CRC-32 that .gnu_debuglink names, of bytes that come in pieces: `before` is that of the pieces before.
std::uint32_t crc32(format::Bytes bytes, std::uint32_t before = 0);

}  // namespace tacho::symbolize
