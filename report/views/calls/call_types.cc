#include "report/views/calls/call_types.h"

#include "format/attachment.h"

namespace tacho::report {
namespace {

constexpr std::string_view kAttachment = "prototypes";
constexpr std::uint64_t kLargest = std::uint64_t{1} << 26;  // bytes

}  // namespace

CallTypes::CallTypes(const format::Features& features) {
  for (const format::Attachment& attachment : features.attachments) {
    if (attachment.name != kAttachment) continue;
    const auto content = format::unpack_attachment(attachment, kLargest);
    if (!content) continue;
    auto read = read_prototypes({reinterpret_cast<const char*>(content->data()), content->size()});
    prototypes_[attachment.origin].merge(read);
  }
}

const Prototype* CallTypes::of(const CallFunction& function) const {
  if (prototypes_.empty()) return nullptr;
  const auto file = prototypes_.find(std::string(function.file));
  if (file == prototypes_.end()) return nullptr;
  const auto found = file->second.find(function.offset);
  return found == file->second.end() ? nullptr : &found->second;
}

}  // namespace tacho::report
