// Decompresses files that are attached to a capture, within a limit: kallsyms, perf maps, the vdso, copies of
// programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "format/container/features.h"
#include "format/extensions/attachment.h"
#include "format/records/build_id.h"

namespace tacho::symbolize {

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

}  // namespace tacho::symbolize
