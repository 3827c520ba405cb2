// Sections that are packed inside an ELF file: marked SHF_COMPRESSED (zlib or zstd), or by the older name
// .zdebug_*.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/cursor.h"
#include "format/result.h"

namespace tacho::symbolize {

// `type` is one of ELFCOMPRESS_*, `packed` what follows the section's own header, `size` what that promises.
// No more than `limit` bytes are unpacked.
Result<std::vector<std::byte>> unpack_section(std::uint32_t type, format::Bytes packed, std::uint64_t size,
                                              std::uint64_t limit);

// A whole section of a 64-bit file, with its header.
Result<std::vector<std::byte>> unpack_marked_section(format::Bytes section, std::endian order,
                                                     std::uint64_t limit);
// One whose name begins with .zdebug_.
Result<std::vector<std::byte>> unpack_named_section(format::Bytes section, std::uint64_t limit);

}  // namespace tacho::symbolize
