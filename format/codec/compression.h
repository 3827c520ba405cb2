// Compresses records into COMPRESSED records with zstd, and inflates them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "format/base/buffer.h"
#include "format/base/cursor.h"
#include "format/base/result.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace tacho::format {

// Makes COMPRESSED records (type 81). Each holds one zstd frame of whole records and can be inflated alone;
// perf's hold one stream for the whole file.
class RecordCompressor {
 public:
  static constexpr std::size_t kMaxInput = 256 * 1024;  // of the contents of a COMPRESSED record, in bytes

  static Result<RecordCompressor> create(int level);
  // Appends COMPRESSED records that hold `records`, which must be whole records one after another.
  Result<> compress(Bytes records, std::vector<std::byte>& out);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const noexcept;
  };
  explicit RecordCompressor(ZSTD_CCtx_s* context) : context_(context) {}
  std::size_t piece_size(Bytes records) const;
  bool pack(Bytes records);
  void append_packed(std::vector<std::byte>& out) const;

  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  Buffer packed_;                  // scratch: a frame
  std::size_t chunk_ = kMaxInput;  // adapts: a record's size field is 16 bits wide
};

// The content of a COMPRESSED record. tacho writes a skippable zstd frame first, with a checksum of the
// compressed frame after it: cheaper than a checksum of the contents.
struct PackedBytes {
  Bytes frames;          // after the checksum
  bool is_sound = true;  // the checksum is right, or there is none
};
PackedBytes packed_bytes(Bytes content);
// Whether the bytes start like a zstd frame, with or without a checksum, which is not verified.
bool begins_as_frame(Bytes content);

// Inflates COMPRESSED and COMPRESSED2 records in file order: perf's single stream over all records, or
// tacho's frame in each.
class RecordInflater {
 public:
  static Result<RecordInflater> create();
  // Appends the inflated bytes. Errors: more than `limit` bytes, a window above 8 MiB, a wrong checksum.
  Result<> inflate(Bytes packed, std::size_t limit, Buffer& out);
  // Drops a broken stream; the next frame starts anew.
  void reset();

 private:
  struct Free {
    void operator()(ZSTD_DCtx_s* context) const noexcept;
  };
  explicit RecordInflater(ZSTD_DCtx_s* context) : context_(context) {}
  std::unique_ptr<ZSTD_DCtx_s, Free> context_;
};

// Compresses `content` to one frame.
Result<std::vector<std::byte>> compress_whole(Bytes content, int level);
// Inflates the complete frames in `packed` into `place` without allocating. An error unless they fill it
// exactly.
Result<> inflate_into(Bytes packed, std::span<std::byte> place);
// Inflates a frame of compress_whole(). An error unless its header says `size`, which is checked before that
// much is allocated.
Result<std::vector<std::byte>> inflate_whole(Bytes frame, std::uint64_t size);

}  // namespace tacho::format
