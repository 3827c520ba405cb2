#include "symbolize/files/decompress.h"

#include <lzma.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace tacho::symbolize {

// A limit against decompression bombs; files that recorders attach compress to about a fifth.
Result<> check_attached_size(const format::Attachment& attachment) {
  const std::uint64_t most = std::min(kLargestText, kAlwaysAllowed + 4 * attachment.packed.size());
  if (attachment.raw_size > most) {
    return Error{"the attached '" + attachment.name + "' would take " + std::to_string(attachment.raw_size) +
                     " bytes, which is too large for its size in the capture",
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

Result<std::vector<std::byte>> unpack_xz(format::Bytes packed, std::uint64_t limit) {
  constexpr std::uint64_t kMostMemory = std::uint64_t{1} << 28;  // bytes of memory for liblzma
  constexpr std::size_t kUnpackedPiece = std::size_t{1} << 18;   // bytes unpacked at a time
  lzma_stream stream = LZMA_STREAM_INIT;
  const std::unique_ptr<lzma_stream, decltype(&lzma_end)> end(&stream, lzma_end);
  if (lzma_stream_decoder(&stream, kMostMemory, 0) != LZMA_OK) return Error{"xz could not be started"};
  stream.next_in = reinterpret_cast<const std::uint8_t*>(packed.data());
  stream.avail_in = packed.size();
  std::vector<std::byte> unpacked;
  for (lzma_ret state = LZMA_OK; state == LZMA_OK;) {
    const std::size_t done = unpacked.size();
    if (done > limit) {
      return Error{"its xz part decompresses to more than " + std::to_string(limit) + " bytes", EFBIG};
    }
    unpacked.resize(done + kUnpackedPiece);
    stream.next_out = reinterpret_cast<std::uint8_t*>(unpacked.data() + done);
    stream.avail_out = kUnpackedPiece;
    state = lzma_code(&stream, LZMA_FINISH);
    unpacked.resize(unpacked.size() - stream.avail_out);
    if (state != LZMA_OK && state != LZMA_STREAM_END) return Error{"its xz part is damaged"};
  }
  return unpacked;
}

std::uint32_t crc32(format::Bytes bytes, std::uint32_t before) {
  return lzma_crc32(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size(), before);
}

}  // namespace tacho::symbolize
