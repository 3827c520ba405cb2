// Decompresses sections of ELF files: SHF_COMPRESSED (zlib or zstd), .zdebug_*, and ELF files under xz
// (.gnu_debugdata).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"

namespace tacho::symbolize {

// `type` is one of ELFCOMPRESS_*, `packed` what follows the section's own header, `size` what that promises.
// No more than `limit` bytes are unpacked.
Result<std::vector<std::byte>> unpack_section(std::uint32_t type, format::Bytes packed, std::uint64_t size,
                                              std::uint64_t limit);

// The same into `place`, which is as large as the section's header promises: nothing else is allocated.
Result<> unpack_section_into(std::uint32_t type, format::Bytes packed, std::span<std::byte> place);

// False when `size` bytes cannot have been packed into so few: the header is damaged.
bool can_hold(std::uint64_t packed_size, std::uint64_t size);

// How much a file of `file_size` bytes may hold when it is unpacked: 32 MiB and four times its size, more
// than compilers' output ever packs to. Beyond, a small file is meant to fill the memory.
constexpr std::uint64_t most_unpacked(std::uint64_t file_size) {
  return (std::uint64_t{1} << 25) + 4 * file_size;
}

// A whole section of a 64-bit file, with its header.
Result<std::vector<std::byte>> unpack_marked_section(format::Bytes section, std::endian order,
                                                     std::uint64_t limit);
// One whose name begins with .zdebug_.
Result<std::vector<std::byte>> unpack_named_section(format::Bytes section, std::uint64_t limit);

// Bytes that were packed with xz, as .gnu_debugdata sections are; and the checksum that comes with it.

// The unpacked bytes; an error when they are more than `limit` or when `packed` is damaged.
Result<std::vector<std::byte>> unpack_xz(format::Bytes packed, std::uint64_t limit);

// The CRC-32 that .gnu_debuglink names, of bytes that come in pieces: `before` is that of the pieces before.
std::uint32_t crc32(format::Bytes bytes, std::uint32_t before = 0);

}  // namespace tacho::symbolize
