// Makes zstd frames from matches found by comparing each record, word by word, with the previous record of
// the same type and size.
//
// Records of a frequent event differ in little more than their time. zstd's search with a hash table takes
// longer.
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
  // Appends one frame of whole records from the start of `records`, at most `most` bytes of them. Returns
  // their size. 0: nothing was appended, since the records differ too much or none is whole.
  std::size_t pack(Bytes records, std::size_t most, Buffer& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tacho::format
