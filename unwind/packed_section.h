// Decompresses sections of ELF files, SHF_COMPRESSED (zlib or zstd) and .zdebug_*, within a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"
#include "unwind/elf_image.h"

namespace tacho::unwind {

// Whether `packed_size` compressed bytes can hold `size` bytes; false: the header is damaged.
bool can_hold(std::uint64_t packed_size, std::uint64_t size);

// The limit of decompressed bytes of a file: 32 MiB and four times its size, more than any compiler's output.
constexpr std::uint64_t max_decompressed(std::uint64_t file_size) {
  return (std::uint64_t{1} << 25) + 4 * file_size;
}

// `type`: ELFCOMPRESS_*; `packed`: the bytes after the section's compression header; `size`: in that header.
// At most `limit` bytes are decompressed.
Result<std::vector<std::byte>> unpack_section(std::uint32_t type, format::Bytes packed, std::uint64_t size,
                                              std::uint64_t limit);
// The same into `out`, which has the size in the header. Allocates nothing.
Result<> unpack_section_into(std::uint32_t type, format::Bytes packed, std::span<std::byte> out);

// Decompresses a SHF_COMPRESSED section, which begins with its compression header: an Elf64_Chdr, or an
// Elf32_Chdr where `address_size` is 4.
Result<std::vector<std::byte>> unpack_shf_compressed(format::Bytes section, std::endian order,
                                                     std::uint64_t limit, std::uint8_t address_size = 8);
// Decompresses a section named .zdebug_*.
Result<std::vector<std::byte>> unpack_zdebug(format::Bytes section, std::uint64_t limit);

// .debug_frame or .zdebug_frame of a file, decompressed. Nothing: it has neither, or it cannot be read.
std::optional<ElfImage::Section> debug_frame_of(const ElfImage& image);

}  // namespace tacho::unwind
