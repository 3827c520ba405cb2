// zstd in and out of COMPRESSED records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "format/buffer.h"
#include "format/cursor.h"
#include "format/result.h"

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace tacho::format {

// Makes COMPRESSED records (type 81), each holding one zstd frame of whole records, so that any of them can
// be read alone (unlike perf's single stream for the whole file).
class RecordCompressor {
 public:
  static constexpr std::size_t kMaxInput = 256 * 1024;  // bytes that one record inflates to, at most

  static Result<RecordCompressor> create(int level);
  // Appends COMPRESSED records that hold `records`, which must be whole records one after another.
  Result<> compress(Bytes records, std::vector<std::byte>& out);

 private:
  struct Free {
    void operator()(ZSTD_CCtx_s* context) const noexcept;
  };
  explicit RecordCompressor(ZSTD_CCtx_s* context) : context_(context) {}
  std::unique_ptr<ZSTD_CCtx_s, Free> context_;
  std::size_t chunk_ = kMaxInput;  // adapts: a record's size field is 16 bits wide
};

// Inflates the bytes of COMPRESSED and COMPRESSED2 records, fed in file order: one stream over many records
// (perf) or a frame in each (ours).
class RecordInflater {
 public:
  static Result<RecordInflater> create();
  // Appends what `packed` holds; refuses more than `limit` bytes and windows above 8 MiB.
  Result<> inflate(Bytes packed, std::size_t limit, Buffer& out);
  // Forgets a stream that broke, to begin again at the next frame.
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
