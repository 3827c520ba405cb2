// Follows a capture file that is being written: where its data ends, and whether more will come.
#pragma once

#include <cstdint>
#include <functional>

#include "format/base/file.h"

namespace tacho::format {

// Options and state of following a capture that is being written (ReadOptions::following).
struct Following {
  enum class End : std::uint8_t {
    NotYet,
    Closed,   // its recorder finished it; a pipe: its writer closed it
    Died,     // its recorder ended without finishing it
    Stopped,  // waits() returned false
  };
  // Whether to go on. Called ten times a second while nothing new comes, and at every 1024th record.
  std::function<bool()> waits;
  End end = End::NotYet;
  // For live output: after a pause, records that wait for their order by time are returned although older
  // ones may still come.
  bool shows_at_once = false;
};

// Locks a file that is being written; the kernel removes the lock when the writer ends, however it ends. Does
// nothing on a file system without locks.
void hold_for_writing(int fd);

class GrowingFile {
 public:
  // The data starts at `data_offset`; the descriptor must outlive this.
  GrowingFile(int fd, std::uint64_t data_offset) : fd_(fd), data_offset_(data_offset) {}

  // The offset in the file where data ends now. Sets end() when no more will come.
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
