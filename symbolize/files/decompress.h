// Decompresses files that are attached to a capture, and sections of ELF files, within a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/container/features.h"
#include "format/extensions/attachment.h"
#include "format/records/build_id.h"

namespace tacho::symbolize {

// Decompresses files that are attached to a capture, within a limit: kallsyms, perf maps, the vdso, copies of
// programs.

inline constexpr std::uint64_t kLargestText = std::uint64_t{1} << 28;  // bytes of a kallsyms or a perf map
inline constexpr std::uint64_t kLargestAlways =
    24 * 1024 * 1024;  // bytes that are unpacked however well they were packed

// The unpacked bytes. An error (EFBIG) when they would be more than kLargestText, or many for the packed
// ones: the memory that a capture costs follows its size (reliability rule: at most four times the bytes that
// were read).
Result<std::vector<std::byte>> unpack_attached_text(const format::Attachment& attachment);
// Whether it will be unpacked, by its size alone.
Result<> check_attached_size(const format::Attachment& attachment);

// A copy of a program or library (`tacho pack --level elf`): what it is called in the capture, and the copy
// of this one. An error with the code ENOENT: there is none.
inline constexpr std::string_view kAttachedFile = "elf/";
std::string attached_file_name(std::string_view path, const format::BuildId& id);
Result<std::vector<std::byte>> unpack_attached_file(const format::Features& features, std::string_view path,
                                                    const format::BuildId& id);

// A source file of code that was hit (`tacho pack --level code`), by its path in the debugging information.
inline constexpr std::string_view kAttachedSource = "source/";

// A jitdump of which the functions that were hit are kept (`tacho pack`), by the path of the whole one.
inline constexpr std::string_view kAttachedJitdump = "jitdump/";

// Decompresses sections of ELF files: SHF_COMPRESSED (zlib or zstd), .zdebug_*, and ELF files under xz
// (.gnu_debugdata).

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
