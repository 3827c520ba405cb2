#include "report/views/calls/call_types.h"

#include "format/extensions/attachment.h"
#include "symbolize/files/attached_text.h"

namespace tacho::report {
namespace {

constexpr std::string_view kAttachment = "prototypes";
// Of all of them together: unpacked bytes; functions, arguments and names of numbers.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 26;
constexpr std::size_t kMostEntries = std::size_t{1} << 20;

}  // namespace

CallTypes::CallTypes(const format::Features& features) {
  std::uint64_t bytes = kMostBytes;
  std::size_t entries = kMostEntries;
  for (const format::Attachment& attachment : features.attachments) {
    if (attachment.name != kAttachment || attachment.raw_size > bytes) continue;
    bytes -= attachment.raw_size;  // whether it can be read or not: that takes its time
    const auto content = symbolize::unpack_attached_text(attachment);
    if (!content) continue;
    auto read = read_prototypes({reinterpret_cast<const char*>(content->data()), content->size()}, entries);
    // A file has several where several events follow its functions: what came first stays.
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
