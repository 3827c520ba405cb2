// What a ring holds, packed while it still lies in the kernel's memory: records that are alike are compared
// with each other there, and only what they differ in is copied.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "format/compression.h"
#include "format/cursor.h"
#include "format/result.h"
#include "record/output/record_walk.h"

namespace tacho::record {

// Bytes that are as they go into the capture: records, packed or plain.
struct PackedStretch {
  std::size_t begin = 0, end = 0;  // where they stand among others
  std::size_t inflated = 0;        // bytes of the records in them
  RecordCounts counts;             // of these alone
};

class RunPacker {
 public:
  // Less than this in a ring is better packed with what comes from others.
  static constexpr std::size_t kLeast = std::size_t{64} << 10;

  explicit RunPacker(format::RecordCompressor compressor) : compressor_(std::move(compressor)) {}
  // Nothing where a capture of this zstd level is not packed in this way.
  static Result<std::optional<RunPacker>> for_level(std::optional<int> level);

  // Appends to `out` the next run of bytes that one look at a ring gives; a record may begin in one run and
  // end in the next. `packed` tells which bytes of `out` need no packing any more: the others are records as
  // they were, because they are not alike enough.
  void add(format::Bytes run, std::vector<std::byte>& out, std::vector<PackedStretch>& packed);
  // Another look begins, whatever became of the one before. What is in `packed` by now stays as it is.
  void begin_look(const std::vector<PackedStretch>& packed) {
    missing_ = 0;
    first_ = packed.size();
  }

 private:
  format::Bytes end_record(format::Bytes run, std::vector<std::byte>& out,
                           std::vector<PackedStretch>& packed);

  void add_stretch(std::size_t begin, std::size_t end, format::Bytes records,
                   std::vector<PackedStretch>& packed) const;

  format::RecordCompressor compressor_;
  std::size_t first_ = 0;      // stretch of this look
  std::size_t missing_ = 0;    // bytes of the last record in `out`, which come with the next run
  std::size_t cut_at_ = 0;     // where that one begins
  bool is_cut_alone_ = false;  // what stands before it is packed
};

}  // namespace tacho::record
