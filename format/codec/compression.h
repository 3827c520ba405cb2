// zstd in and out of COMPRESSED records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "format/base/buffer.h"
#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/codec/delta_matcher.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace tacho::format {

// Makes COMPRESSED records (type 81), each holding one zstd frame of whole records, so that any of them can
// be read alone (unlike perf's single stream for the whole file).
class RecordCompressor {
 public:
  static constexpr std::size_t kMaxInput = 256 * 1024;  // bytes that one record inflates to, at most
  // At this level frames are made by comparing records with each other, where that does nearly as well.
  static constexpr int kQuickLevel = 1;

  static Result<RecordCompressor> create(int level);
  // Appends COMPRESSED records that hold `records`, which must be whole records one after another.
  Result<> compress(Bytes records, std::vector<std::byte>& out);
  // One COMPRESSED record at most, of the first of `records`, whose last one may be cut: as long as comparing
  // them with each other does nearly as well as zstd. The bytes that it holds; 0: zstd had better take them
  // all, or no record is whole, and nothing was appended.
  std::size_t compress_alike(Bytes records, std::vector<std::byte>& out);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const noexcept;
  };
  // Which way of packing does well with the records of late. Both are tried now and then.
  struct Trial {
    unsigned pieces_left = 0;     // until the next one
    unsigned after_failure = 1;   // pieces until another one
    bool is_alike_good = false;   // by comparing
    std::size_t least_ratio = 0;  // what that is expected to reach; less, and another trial is due
    void decide(bool alike_is_good, std::size_t ratio);
  };
  explicit RecordCompressor(ZSTD_CCtx_s* context) : context_(context) {}
  std::size_t piece_size(Bytes records) const;
  void append_piece(std::vector<std::byte>& out);
  std::size_t pack_alike(Bytes records, std::size_t most);
  std::size_t try_both(Bytes records);
  bool pack_by_zstd(Bytes records);
  void append_packed(std::vector<std::byte>& out) const;

  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  std::unique_ptr<DeltaMatcher> alike_;  // null: another level was asked for
  Trial trial_;
  Buffer packed_, other_;          // scratch: a frame
  std::size_t chunk_ = kMaxInput;  // adapts: a record's size field is 16 bits wide
};

// What a COMPRESSED record holds. tacho's start with a frame that zstd skips: a checksum of the frame behind
// it, so that damage is found in what is packed, where bytes are few.
struct PackedBytes {
  Bytes frames;          // behind the checksum
  bool is_sound = true;  // it agrees, or there is none
};
PackedBytes packed_bytes(Bytes content);
// Whether it starts as a frame does, with a checksum in front or without; the checksum is not verified.
bool begins_as_frame(Bytes content);

// Inflates the bytes of COMPRESSED and COMPRESSED2 records, fed in file order: one stream over many records
// (perf) or a frame in each (ours).
class RecordInflater {
 public:
  static Result<RecordInflater> create();
  // Appends what `packed` holds; refuses more than `limit` bytes, windows above 8 MiB and what a checksum of
  // ours disagrees with.
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

// Fills `place` with what the whole frames in `packed` hold, and allocates nothing for it. An error when that
// is not exactly as much.
Result<> inflate_into(Bytes packed, std::span<std::byte> place);

}  // namespace tacho::format
