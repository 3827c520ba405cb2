// Compression of similar records while they are in the kernel's rings.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/codec/compression.h"
#include "record/output/record_counts.h"

namespace tacho::record {

// A compressed part of a batch, as it goes into the capture.
struct CompressedRun {
  std::size_t begin = 0, end = 0;  // offsets in the batch
  std::size_t inflated = 0;        // bytes of the records in them
  RecordCounts counts;             // of these records only
};

// Compresses the contents of a ring while they are in the kernel's memory: similar records are compared
// there, and only their differences are copied.
class RingCompressor {
 public:
  // With less than this in a ring, several rings are better compressed together.
  static constexpr std::size_t kLeast = std::size_t{64} << 10;

  explicit RingCompressor(format::RecordCompressor compressor) : compressor_(std::move(compressor)) {}
  // nullopt: captures of this zstd level are not compressed this way.
  static Result<std::optional<RingCompressor>> for_level(std::optional<int> level);

  // Appends a run of bytes of one pass over a ring to `out`; a record may begin in one run and end in the
  // next. `packed` lists which bytes of `out` are compressed; the others are plain records, which are not
  // similar enough.
  void compress_run(format::Bytes run, std::vector<std::byte>& out, std::vector<CompressedRun>& packed);
  // Begins another pass, whatever happened to the last one. The contents of `packed` stay.
  void begin_look(const std::vector<CompressedRun>& packed) {
    missing_ = 0;
    first_ = packed.size();
  }

 private:
  format::Bytes end_record(format::Bytes run, std::vector<std::byte>& out,
                           std::vector<CompressedRun>& packed);

  void add_run(std::size_t begin, std::size_t end, format::Bytes records,
               std::vector<CompressedRun>& packed) const;

  format::RecordCompressor compressor_;
  std::size_t first_ = 0;      // first run of this pass
  std::size_t missing_ = 0;    // the missing bytes of the last record in `out`, which come with the next run
  std::size_t cut_at_ = 0;     // the start of that record
  bool is_cut_alone_ = false;  // the bytes before it are compressed
};

}  // namespace tacho::record
