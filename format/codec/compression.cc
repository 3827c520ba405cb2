#include "format/codec/compression.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "format/base/digest.h"
#include "format/records/perf_abi.h"
#include "format/records/record_view.h"

namespace tacho::format {

namespace {

constexpr std::size_t kMaxRecord = 65535;  // a record's size field is 16 bits wide
// Skippable zstd frame with the digest of the next frame. Captures of older versions have another digest
// there, which is not checked.
constexpr std::uint32_t kCheckMagic = 0x184D2A58, kOldCheckMagic = 0x184D2A57, kCheckSize = 8;
constexpr std::size_t kCheckFrame = 4 + 4 + kCheckSize;
constexpr std::size_t kMaxPacked = kMaxRecord - kRecordHeaderSize - kCheckFrame;
constexpr std::size_t kMinChunk = 32 * 1024;  // compressing less does not pay
constexpr int kMaxWindowLog = 23;  // 8 MiB: the limit that RFC 8878 recommends for untrusted frames

Error zstd_error(std::size_t code) { return Error{std::string("zstd: ") + ZSTD_getErrorName(code)}; }

// The longest run of whole records at the start of `records` that is at most `limit` bytes; at least one
// record.
std::size_t whole_records(Bytes records, std::size_t limit) {
  std::size_t end = 0;
  while (records.size() - end >= kRecordHeaderSize) {
    std::uint16_t size;
    std::memcpy(&size, records.data() + end + 6, sizeof size);
    if (size < kRecordHeaderSize || size > records.size() - end) break;
    if (end != 0 && end + size > limit) break;
    end += size;
  }
  return end;
}

}  // namespace

void RecordCompressor::Free::operator()(ZSTD_CCtx_s* context) const noexcept { ZSTD_freeCCtx(context); }
void RecordInflater::Free::operator()(ZSTD_DCtx_s* context) const noexcept { ZSTD_freeDCtx(context); }

Result<RecordCompressor> RecordCompressor::create(int level) {
  RecordCompressor compressor(ZSTD_createCCtx());
  if (compressor.context_ == nullptr) return Error{"zstd: no memory for a compression context"};
  const std::size_t set = ZSTD_CCtx_setParameter(compressor.context_.get(), ZSTD_c_compressionLevel, level);
  if (ZSTD_isError(set) != 0)
    return use_error("zstd level " + std::to_string(level) + ": " + ZSTD_getErrorName(set));
  return compressor;
}

// Divides the records into pieces of equal size, so that the last piece is not small.
std::size_t RecordCompressor::piece_size(Bytes records) const {
  const std::size_t pieces = (records.size() + chunk_ - 1) / chunk_;
  return (records.size() + pieces - 1) / pieces;
}

Result<> RecordCompressor::compress(Bytes records, std::vector<std::byte>& out) {
  while (!records.empty()) {
    const std::size_t size = whole_records(records, piece_size(records));
    if (size == 0) return Error{"the records to compress are not whole"};
    if (pack(records.first(size))) {
      append_packed(out);
      if (packed_.size() < kMaxPacked / 4) chunk_ = std::min(kMaxInput, chunk_ * 2);
    } else {
      // The frame is too large for one COMPRESSED record: try fewer records. A single record that does not
      // fit is written uncompressed.
      const bool is_least = chunk_ <= kMinChunk;
      chunk_ = std::max(kMinChunk, chunk_ / 2);
      if (!is_least) continue;
      out.insert(out.end(), records.begin(), records.begin() + static_cast<std::ptrdiff_t>(size));
    }
    records = records.subspan(size);
  }
  return Done{};
}

// Compresses to packed_; false: larger than a record can be.
bool RecordCompressor::pack(Bytes records) {
  const std::size_t room = std::min(kMaxPacked, ZSTD_compressBound(records.size()));
  packed_.resize(room);
  const std::size_t size =
      ZSTD_compress2(context_.get(), packed_.data(), room, records.data(), records.size());
  if (ZSTD_isError(size) != 0) return false;
  packed_.resize(size);
  return true;
}

void RecordCompressor::append_packed(std::vector<std::byte>& out) const {
  std::array<std::byte, kRecordHeaderSize + kCheckFrame> head{};
  const std::uint32_t type = abi::kRecordCompressed;
  const auto whole = static_cast<std::uint16_t>(head.size() + packed_.size());
  const std::uint64_t sum = digest(packed_);
  std::byte* const check = head.data() + kRecordHeaderSize;
  std::memcpy(head.data(), &type, sizeof type);
  std::memcpy(head.data() + 6, &whole, sizeof whole);
  std::memcpy(check, &kCheckMagic, sizeof kCheckMagic);
  std::memcpy(check + 4, &kCheckSize, sizeof kCheckSize);
  std::memcpy(check + 8, &sum, sizeof sum);
  out.insert(out.end(), head.begin(), head.end());
  out.insert(out.end(), packed_.begin(), packed_.end());
}

PackedBytes packed_bytes(Bytes content) {
  Cursor in(content, std::endian::little);
  const std::uint32_t magic = in.u32();
  if ((magic != kCheckMagic && magic != kOldCheckMagic) || in.u32() != kCheckSize) return {content};
  const std::uint64_t sum = in.u64();
  if (in.failed()) return {content};
  return {in.rest(), magic == kOldCheckMagic || sum == digest(in.rest())};
}

bool begins_as_frame(Bytes content) {
  constexpr std::uint32_t kFrameMagic = 0xFD2FB528;
  Cursor in(content, std::endian::little);
  const std::uint32_t magic = in.u32();
  if ((magic != kCheckMagic && magic != kOldCheckMagic) || in.u32() != kCheckSize)
    return magic == kFrameMagic;
  in.u64();
  return in.u32() == kFrameMagic;
}

Result<RecordInflater> RecordInflater::create() {
  RecordInflater inflater(ZSTD_createDCtx());
  if (inflater.context_ == nullptr) return Error{"zstd: no memory for a decompression context"};
  ZSTD_DCtx_setParameter(inflater.context_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  return inflater;
}

void RecordInflater::reset() { ZSTD_DCtx_reset(context_.get(), ZSTD_reset_session_only); }

Result<> RecordInflater::inflate(Bytes packed, std::size_t limit, Buffer& out) {
  constexpr std::size_t kStep = 256 * 1024;
  const std::size_t start = out.size();
  const auto [frames, is_sound] = packed_bytes(packed);
  if (!is_sound) return Error{"its checksum is wrong"};
  ZSTD_inBuffer in{frames.data(), frames.size(), 0};
  for (;;) {
    const std::size_t filled = out.size();
    const std::size_t room = std::min(kStep, limit - (filled - start) + 1);
    out.resize(filled + room);
    ZSTD_outBuffer piece{out.data() + filled, room, 0};
    const std::size_t hint = ZSTD_decompressStream(context_.get(), &piece, &in);
    out.resize(filled + piece.pos);
    if (ZSTD_isError(hint) != 0) return zstd_error(hint);
    if (out.size() - start > limit) return Error{"inflates to more than " + std::to_string(limit) + " bytes"};
    // zstd has more output only if it filled the buffer.
    if (in.pos == in.size && piece.pos < room) return Done{};
    // No input was read and no output written.
    if (piece.pos == 0 && in.pos != in.size && hint != 0) return Error{"zstd: the frame makes no progress"};
  }
}

Result<std::vector<std::byte>> compress_whole(Bytes content, int level) {
  std::vector<std::byte> frame(ZSTD_compressBound(content.size()));
  const std::size_t size = ZSTD_compress(frame.data(), frame.size(), content.data(), content.size(), level);
  if (ZSTD_isError(size) != 0) return zstd_error(size);
  frame.resize(size);
  return frame;
}

Result<> inflate_into(Bytes packed, std::span<std::byte> place) {
  const std::size_t size = ZSTD_decompress(place.data(), place.size(), packed.data(), packed.size());
  if (ZSTD_isError(size) != 0) return zstd_error(size);
  if (size != place.size()) return Error{"has fewer bytes than its header says"};
  return Done{};
}

Result<std::vector<std::byte>> inflate_whole(Bytes frame, std::uint64_t size) {
  if (ZSTD_getFrameContentSize(frame.data(), frame.size()) != size)
    return Error{"its size differs from the one in its header"};
  std::vector<std::byte> content(static_cast<std::size_t>(size));
  if (auto done = inflate_into(frame, content); !done) return std::move(done.error());
  return content;
}

}  // namespace tacho::format
