// A compressor for records of one kind: zstd frames whose matches come from comparing each record, word by
// word, with the previous record of its kind.
//
// Records of a frequent event differ in little but their time. zstd itself looks for repeats anywhere, with a
// hash table, which takes longer.
#pragma once

#include <cstddef>
#include <memory>

#include "format/base/buffer.h"
#include "format/base/cursor.h"

namespace tacho::format {

class DeltaMatcher {
 public:
  DeltaMatcher();
  DeltaMatcher(const DeltaMatcher&) = delete;
  DeltaMatcher& operator=(const DeltaMatcher&) = delete;
  ~DeltaMatcher();
  // Makes one frame of the whole records at the start of `records`, at most `most` bytes of them, and appends
  // it to `out`. The bytes of those records; 0 when they are not alike enough for this, or no records, and
  // nothing was appended.
  std::size_t pack(Bytes records, std::size_t most, Buffer& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tacho::format
