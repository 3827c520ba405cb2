// Follows a capture file that its recorder is still writing: where its data ends, and whether more will come.
#pragma once

#include <cstdint>
#include <functional>

#include "format/base/file.h"

namespace tacho::format {

// How a reader follows a capture that is still written (ReadOptions::following).
struct Following {
  enum class End : std::uint8_t {
    NotYet,
    Closed,   // its recorder finished it; of a pipe: its writer has gone
    Died,     // its recorder ended without finishing it
    Stopped,  // waits() said so
  };
  // Whether to go on: asked ten times a second while nothing new is there, and at every 1024th record.
  std::function<bool()> waits;
  End end = End::NotYet;
  // Output is watched live: after a pause, records that wait for their place in time order are given although
  // older ones may still come.
  bool shows_at_once = false;
};

// A writer's mark on a file, which goes away with the writer, whatever ends it. Where a file system knows no
// locks there is none.
void hold_for_writing(int fd);

class GrowingFile {
 public:
  // The data starts at `data_offset`; the descriptor must outlive this.
  GrowingFile(int fd, std::uint64_t data_offset) : fd_(fd), data_offset_(data_offset) {}

  // Where sound data ends by now, as an offset in the file; sets end() when that is all there will be.
  std::uint64_t data_end();
  Following::End end() const { return end_; }

 private:
  int fd_;
  std::uint64_t data_offset_;
  std::uint64_t size_before_ = 0;  // bytes of the file at the last look
  bool was_held_ = false;
  Following::End end_ = Following::End::NotYet;
};

}  // namespace tacho::format
