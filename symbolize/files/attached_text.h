// The files with symbols that travel inside a capture, as text again: kallsyms, maps of generated code, the
// vdso.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/attachment.h"
#include "format/result.h"

namespace tacho::symbolize {

inline constexpr std::uint64_t kLargestText = std::uint64_t{1} << 28;  // bytes of a kallsyms or a perf map

// The unpacked bytes. An error (EFBIG) when they would be more than kLargestText, or many for the packed
// ones: the memory that a capture costs follows its size (reliability rule: at most four times the bytes that
// were read).
Result<std::vector<std::byte>> unpack_attached_text(const format::Attachment& attachment);

}  // namespace tacho::symbolize
