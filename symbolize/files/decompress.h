// Decompresses files that are attached to a capture, and xz, within a limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/container/features.h"
#include "format/extensions/attachment.h"
#include "format/records/build_id.h"

namespace tacho::symbolize {

// Files that are attached to a capture: kallsyms, perf maps, the vdso, copies of programs.

inline constexpr std::uint64_t kLargestText = std::uint64_t{1} << 28;  // bytes of a kallsyms or a perf map
inline constexpr std::uint64_t kAlwaysAllowed = 24 * 1024 * 1024;  // bytes that are decompressed at any ratio

// The decompressed bytes. An error (EFBIG) if they exceed kLargestText, or the limit for their compressed
// size: the memory for a capture must follow its size (at most four times the bytes that were read).
Result<std::vector<std::byte>> unpack_attached_text(const format::Attachment& attachment);
// Checks these limits without decompressing.
Result<> check_attached_size(const format::Attachment& attachment);

// Copies of programs and libraries (`tacho pack --level elf`): the attachment's name, and the contents. Error
// code ENOENT: there is none.
inline constexpr std::string_view kAttachedFile = "elf/";
std::string attached_file_name(std::string_view path, const format::BuildId& id);
Result<std::vector<std::byte>> unpack_attached_file(const format::Features& features, std::string_view path,
                                                    const format::BuildId& id);

// Prefix of attachments that are source files (`tacho pack --level code`), followed by the path in DWARF.
inline constexpr std::string_view kAttachedSource = "source/";

// Prefix of attachments that are jitdumps reduced to the functions with samples (`tacho pack`), followed by
// the original path.
inline constexpr std::string_view kAttachedJitdump = "jitdump/";

// Decompresses xz (.gnu_debugdata). An error: more than `limit` bytes, or `packed` is damaged.
Result<std::vector<std::byte>> unpack_xz(format::Bytes packed, std::uint64_t limit);

// The CRC-32 of .gnu_debuglink, for bytes in pieces: `before` is the result for the previous pieces.
std::uint32_t crc32(format::Bytes bytes, std::uint32_t before = 0);

}  // namespace tacho::symbolize
