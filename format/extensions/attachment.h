// Attachments: compressed files of the recording host in the capture (kallsyms, perf maps, the vdso).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/base/result.h"

namespace tacho::format {

inline constexpr std::string_view kKallsymsAttachment = "kallsyms";

struct Attachment {
  std::string name;               // "kallsyms", "perf-map/1234", "vdso"
  std::string origin;             // the path from which it was read
  std::uint64_t raw_size = 0;     // bytes before compression
  std::vector<std::byte> packed;  // one zstd frame
};

// Compresses `content` (zstd, level 1).
Result<Attachment> pack_attachment(std::string name, std::string origin, Bytes content);
// An error: more than `limit` bytes, or not raw_size bytes.
Result<std::vector<std::byte>> unpack_attachment(const Attachment& attachment,
                                                 std::uint64_t limit = std::uint64_t{256} << 20);

// The body of header feature kAttachments (docs/capture-format.md).
void write_attachments(ByteWriter& out, const std::vector<Attachment>& attachments);
Result<std::vector<Attachment>> parse_attachments(Cursor in);

}  // namespace tacho::format
