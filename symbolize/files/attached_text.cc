#include "symbolize/files/attached_text.h"

#include <algorithm>
#include <cerrno>
#include <string>

namespace tacho::symbolize {

// A few bytes can stand for any number; what hosts attach packs to a fifth.
Result<> check_attached_size(const format::Attachment& attachment) {
  const std::uint64_t most = std::min(kLargestText, kLargestAlways + 4 * attachment.packed.size());
  if (attachment.raw_size > most) {
    return Error{"the attached '" + attachment.name + "' would take " + std::to_string(attachment.raw_size) +
                     " bytes, too many for its size in the capture",
                 EFBIG};
  }
  return Done{};
}

Result<std::vector<std::byte>> unpack_attached_text(const format::Attachment& attachment) {
  if (auto fine = check_attached_size(attachment); !fine) return std::move(fine.error());
  return format::unpack_attachment(attachment, kLargestText);
}

std::string attached_file_name(std::string_view path, const format::BuildId& id) {
  return std::string(kAttachedFile) + (id.empty() ? std::string(path) : id.hex());
}

Result<std::vector<std::byte>> unpack_attached_file(const format::Features& features, std::string_view path,
                                                    const format::BuildId& id) {
  const auto* const attached = features.attachment(attached_file_name(path, id));
  if (attached == nullptr) return Error{"the capture has no copy of it", ENOENT};
  return unpack_attached_text(*attached);
}

}  // namespace tacho::symbolize
