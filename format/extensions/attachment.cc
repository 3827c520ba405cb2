#include "format/extensions/attachment.h"

#include "format/codec/compression.h"

namespace tacho::format {

namespace {

// docs/capture-format.md, "ATTACHMENTS".
constexpr std::uint32_t kAttachmentVersion = 1;
constexpr std::uint32_t kMaxAttachments = 65536;
constexpr int kAttachmentLevel = 1;  // kallsyms: 5.4 MB to 1.0 MB, as with level 3, in half the time

}  // namespace

Result<Attachment> pack_attachment(std::string name, std::string origin, Bytes content) {
  auto packed = compress_whole(content, kAttachmentLevel);
  if (!packed) return std::move(packed.error()).in(origin);
  return Attachment{std::move(name), std::move(origin), content.size(), std::move(*packed)};
}

Result<std::vector<std::byte>> unpack_attachment(const Attachment& attachment, std::uint64_t limit) {
  const std::string place = "attachment '" + attachment.name + "'";
  if (attachment.raw_size > limit)
    return Error{place + ": " + std::to_string(attachment.raw_size) + " bytes exceed the limit"};
  auto content = inflate_whole(attachment.packed, attachment.raw_size);
  if (!content) return std::move(content.error()).in(place);
  return content;
}

void write_attachments(ByteWriter& out, const std::vector<Attachment>& attachments) {
  out.u32(kAttachmentVersion).u32(static_cast<std::uint32_t>(attachments.size()));
  for (const Attachment& attachment : attachments) {
    out.u32(static_cast<std::uint32_t>(attachment.name.size()));
    out.u32(static_cast<std::uint32_t>(attachment.origin.size()));
    out.u64(attachment.raw_size).u64(attachment.packed.size());
    out.bytes(std::as_bytes(std::span(attachment.name))).bytes(std::as_bytes(std::span(attachment.origin)));
    out.bytes(attachment.packed).align(8);
  }
}

Result<std::vector<Attachment>> parse_attachments(Cursor in) {
  const std::size_t whole = in.left();
  const std::uint32_t version = in.u32();
  const std::uint32_t count = in.u32();
  if (in.failed()) return Error{"cut short"};
  if (version != kAttachmentVersion)
    return Error{"version " + std::to_string(version) + " is not known, 1 is"};
  if (count > kMaxAttachments) return Error{std::to_string(count) + " attachments are too many"};
  std::vector<Attachment> attachments;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t name_size = in.u32();
    const std::uint32_t origin_size = in.u32();
    Attachment attachment;
    attachment.raw_size = in.u64();
    const std::uint64_t packed_size = in.u64();
    attachment.name = as_text(in.take_bytes(name_size));
    attachment.origin = as_text(in.take_bytes(origin_size));
    const Bytes packed = in.take_bytes(packed_size);
    attachment.packed.assign(packed.begin(), packed.end());
    if (in.failed()) return Error{"cut short"};
    const std::size_t used = whole - in.left();
    in.skip((8 - used % 8) % 8);
    attachments.push_back(std::move(attachment));
  }
  if (in.failed()) return Error{"cut short"};
  return attachments;
}

}  // namespace tacho::format
