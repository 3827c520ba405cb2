// A compressor for records of one kind: writes zstd frames (RFC 8878) whose matches come from comparing each
// record, word by word, with the previous record of its kind.
//
// Records of a frequent event differ in little but their time. zstd itself looks for repeats anywhere, with a
// hash table, which takes longer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "format/base/buffer.h"
#include "format/base/cursor.h"
#include "format/codec/fse_table.h"

namespace tacho::format {

class DeltaMatcher {
 public:
  // Makes one frame of the whole records at the start of `records`, at most `most` bytes of them, and appends
  // it to `out`. The bytes of those records; 0 when they are not alike enough for this, or no records, and
  // nothing was appended.
  std::size_t pack(Bytes records, std::size_t most, Buffer& out);

 private:
  // Bytes as they are, then bytes that stand at a distance before already.
  struct Sequence {
    std::uint32_t plain, same;
    std::uint32_t distance;  // zstd's offset value: up to 3 a repeat offset, else the distance + 3
    std::uint8_t plain_code, same_code, distance_code;
  };
  void begin_frame();
  const std::byte* alike_before(Bytes record, const std::byte* first);
  void compare(Bytes record, const std::byte* before);
  void end_same(const std::byte* end);
  std::uint32_t name_distance(std::uint32_t distance, bool is_behind_plain);
  void begin_block();
  bool end_block(const std::byte* end, std::size_t content, bool is_last, Buffer& out);
  std::byte* write_literals(std::byte* out) const;
  std::byte* write_sequences(std::byte* out);

  static constexpr std::size_t kKinds = 256;
  using LastPlaces = std::array<std::uint32_t, kKinds>;  // where a record begins, and 1; 0: none yet
  LastPlaces last_of_kind_{}, last_of_size_{};
  // The sequence that is open: `same_` bytes that are equal at `distance_`, behind `plain_` others.
  std::size_t plain_ = 0, same_ = 0;
  std::uint32_t distance_ = 0;
  std::array<std::uint32_t, 3> used_distances_{};
  // Of the block.
  Buffer literals_;
  std::size_t literals_size_ = 0;
  std::vector<Sequence> sequences_;
  using Counts = std::array<std::uint32_t, FseTable::kMostSymbols>;
  Counts plain_counts_{}, same_counts_{}, distance_counts_{};
  FseTable plain_table_, same_table_, distance_table_;
};

}  // namespace tacho::format
