#include "symbolize/files/decompress.h"

#include <elf.h>
#include <libdeflate.h>
#include <lzma.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <memory>
#include <new>

#include "format/codec/compression.h"

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

namespace {

constexpr std::uint32_t kZstd = 2;  // ELFCOMPRESS_ZSTD, which Debian 12's elf.h lacks
constexpr std::uint64_t kMostGrowth =
    1 << 15;  // times; zlib's own limit is 1032, zstd's is near this for blocks of one byte
constexpr std::size_t kOldMagicSize = 4;

// Fills `unpacked`, which has the size in the header. False: the contents have another size.
bool inflate_zlib(format::Bytes packed, std::span<std::byte> unpacked) {
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> decompressor(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (decompressor == nullptr) throw std::bad_alloc();
  // Without a pointer for the size, the contents must have the size of `unpacked`.
  return libdeflate_zlib_decompress_ex(decompressor.get(), packed.data(), packed.size(), unpacked.data(),
                                       unpacked.size(), nullptr, nullptr) == LIBDEFLATE_SUCCESS;
}

bool inflate_zstd(format::Bytes packed, std::span<std::byte> unpacked) {
  return static_cast<bool>(format::inflate_into(packed, unpacked));
}

struct Row {
  std::uint32_t type;
  bool (*inflate)(format::Bytes packed, std::span<std::byte> unpacked);
};
constexpr Row kTypes[] = {{ELFCOMPRESS_ZLIB, inflate_zlib}, {kZstd, inflate_zstd}};

}  // namespace

bool can_hold(std::uint64_t packed_size, std::uint64_t size) { return size / kMostGrowth <= packed_size; }

Result<std::vector<std::byte>> unpack_section(std::uint32_t type, format::Bytes packed, std::uint64_t size,
                                              std::uint64_t limit) {
  if (!can_hold(packed.size(), size)) return Error{"a compressed section has an impossible size"};
  if (size > limit) return Error{"a compressed section has an impossible size", EFBIG};
  std::vector<std::byte> unpacked(static_cast<std::size_t>(size));
  if (auto done = unpack_section_into(type, packed, unpacked); !done) return std::move(done.error());
  return unpacked;
}

Result<> unpack_section_into(std::uint32_t type, format::Bytes packed, std::span<std::byte> out) {
  const auto row = std::ranges::find(kTypes, type, &Row::type);
  if (row == std::end(kTypes)) {
    return Error{"a compressed section is of type " + std::to_string(type) +
                 ", which is neither zlib nor zstd"};
  }
  if (!row->inflate(packed, out)) return Error{"a compressed section cannot be decompressed"};
  return Done{};
}

Result<std::vector<std::byte>> unpack_shf_compressed(format::Bytes section, std::endian order,
                                                     std::uint64_t limit) {
  format::Cursor in(section, order);
  const std::uint32_t type = in.u32();
  in.u32();  // reserved
  const std::uint64_t size = in.u64();
  in.u64();  // alignment
  if (in.failed()) return Error{"a compressed section has no header"};
  return unpack_section(type, section.last(in.left()), size, limit);
}

Result<std::vector<std::byte>> unpack_zdebug(format::Bytes section, std::uint64_t limit) {
  format::Cursor in(section, std::endian::big);
  const bool is_zlib = in.text(kOldMagicSize) == "ZLIB";
  const std::uint64_t size = in.u64();
  if (in.failed() || !is_zlib) return Error{"a compressed section has no header"};
  return unpack_section(ELFCOMPRESS_ZLIB, section.last(in.left()), size, limit);
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
