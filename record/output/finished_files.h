// Captures that a recording finished, each under a name with its time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "format/result.h"

namespace tacho::record {

class FinishedFiles {
 public:
  // `path`: where each stands while it is written. It is named PATH.TIME then. `most`: of them all, one that
  // is being written included; 0: all are kept.
  FinishedFiles(std::string path, std::size_t most) : path_(std::move(path)), most_(most) {}

  // The file at the path is finished: names it, never over another.
  Result<> add();
  // Another one will be written: removes the oldest of ours, as far as there are too many.
  void make_room();
  // For messages: "3 files perf.data.*".
  std::string place() const;
  std::size_t count() const { return count_; }
  // Names that were given since the last call; from any thread.
  std::vector<std::string> take_news();

 private:
  struct File {
    std::string name;
    std::uint64_t device, inode;
  };
  std::string path_;
  std::size_t most_;
  std::deque<File> files_;  // oldest first
  std::size_t count_ = 0;   // of all, the removed ones included
  std::mutex mutex_;
  std::vector<std::string> news_;  // by the mutex
};

// "20240131235959" and hundredths of a second, of now and in local time, as perf has it.
std::string time_for_name();

}  // namespace tacho::record
