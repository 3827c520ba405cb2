#include "format/compression.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "format/perf_abi.h"
#include "format/record_view.h"

namespace tacho::format {

namespace {

constexpr std::size_t kMaxRecord = 65535;  // a record's size field is 16 bits wide
constexpr std::size_t kMaxPacked = kMaxRecord - kRecordHeaderSize;
constexpr std::size_t kMinChunk = 32 * 1024;  // compressing less does not pay
constexpr int kMaxWindowLog = 23;             // 8 MiB: what zstd recommends to accept from strangers

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
  // A damaged frame must not pass as a sound one.
  ZSTD_CCtx_setParameter(compressor.context_.get(), ZSTD_c_checksumFlag, 1);
  return compressor;
}

Result<> RecordCompressor::compress(Bytes records, std::vector<std::byte>& out) {
  while (!records.empty()) {
    const std::size_t size = whole_records(records, chunk_);
    if (size == 0) return Error{"records to compress do not end where their sizes say"};
    const std::size_t start = out.size();
    const std::size_t room = std::min(kMaxPacked, ZSTD_compressBound(size));
    out.resize(start + kRecordHeaderSize + room);
    const std::size_t packed =
        ZSTD_compress2(context_.get(), out.data() + start + kRecordHeaderSize, room, records.data(), size);
    if (ZSTD_isError(packed) != 0) {
      // Does not shrink enough for one record: less at a time. A single record that does not fit stays plain.
      out.resize(start);
      if (chunk_ > kMinChunk) {
        chunk_ = std::max(kMinChunk, chunk_ / 2);
        continue;
      }
      out.insert(out.end(), records.begin(), records.begin() + static_cast<std::ptrdiff_t>(size));
      records = records.subspan(size);
      continue;
    }
    out.resize(start + kRecordHeaderSize + packed);
    const std::uint32_t type = abi::kRecordCompressed;
    const auto whole = static_cast<std::uint16_t>(kRecordHeaderSize + packed);
    std::memset(out.data() + start, 0, kRecordHeaderSize);
    std::memcpy(out.data() + start, &type, sizeof type);
    std::memcpy(out.data() + start + 6, &whole, sizeof whole);
    records = records.subspan(size);
    if (packed < kMaxPacked / 4) chunk_ = std::min(kMaxInput, chunk_ * 2);
  }
  return Done{};
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
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  for (;;) {
    const std::size_t filled = out.size();
    const std::size_t room = std::min(kStep, limit - (filled - start) + 1);
    out.resize(filled + room);
    ZSTD_outBuffer piece{out.data() + filled, room, 0};
    const std::size_t hint = ZSTD_decompressStream(context_.get(), &piece, &in);
    out.resize(filled + piece.pos);
    if (ZSTD_isError(hint) != 0) return Error{std::string("zstd: ") + ZSTD_getErrorName(hint)};
    if (out.size() - start > limit) return Error{"inflates to more than " + std::to_string(limit) + " bytes"};
    // More output may wait inside zstd only when the piece was filled to its end.
    if (in.pos == in.size && piece.pos < room) return Done{};
    if (piece.pos == 0 && in.pos != in.size && hint != 0 && room != 0) {
      // Neither side moved although both could: the stream is stuck.
      return Error{"zstd: the frame makes no progress"};
    }
  }
}

Result<> inflate_into(Bytes packed, std::span<std::byte> place) {
  const std::size_t size = ZSTD_decompress(place.data(), place.size(), packed.data(), packed.size());
  if (ZSTD_isError(size) != 0) return Error{std::string("zstd: ") + ZSTD_getErrorName(size)};
  if (size != place.size()) return Error{"holds fewer bytes than it says"};
  return Done{};
}

}  // namespace tacho::format
