// The files of a recording that writes several, one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "format/base/result.h"

namespace tacho::record {

// The finished captures of a recording, named by time.
class FinishedFiles {
 public:
  // `path`: of the current file, which is renamed to PATH.TIME at its end. `most`: the maximum of files,
  // including the current one; 0: no limit.
  FinishedFiles(std::string path, std::size_t most) : path_(std::move(path)), most_(most) {}

  // Renames the finished file at the path, never to an existing name.
  Result<> add_file();
  // Removes the oldest files of this recording so that one more fits into the maximum.
  void make_room();
  // For messages: "3 files perf.data.*".
  std::string place() const;
  std::size_t count() const { return count_; }
  std::vector<std::string> names() const;
  // As in FileSeries. Any thread may call them.
  std::vector<std::string> take_new_names();
  bool begin_rewrite(const std::string& name);
  void end_rewrite();

 private:
  struct File {
    std::string name;
    std::uint64_t device, inode;
  };
  std::string path_;
  std::size_t most_;
  std::deque<File> files_;  // oldest first; guarded by the mutex
  std::size_t count_ = 0;   // of all files, removed ones included
  mutable std::mutex mutex_;
  std::vector<std::string> news_;  // guarded by the mutex
  // The file that another process rewrites; empty: none. Guarded by the mutex.
  std::string rewritten_;
  bool is_rewritten_removed_ = false;
};

// What the output of several files can do besides writing (CaptureOutput::series()).
class FileSeries {
 public:
  // Arguments as of FinishedFiles.
  FileSeries(std::string path, std::size_t most_files) : finished_(std::move(path), most_files) {}
  FileSeries(const FileSeries&) = delete;
  FileSeries& operator=(const FileSeries&) = delete;
  virtual ~FileSeries() = default;

  // Begins to describe the running processes, and, when they are described, begins the next file. Any thread
  // may call is_next_prepared().
  virtual Result<> prepare_next() { return Done{}; }
  virtual bool is_next_prepared() const { return true; }
  virtual Result<> begin_next() = 0;
  // Ends the open file after the last record.
  virtual Result<> finish() = 0;

  // For messages: `path`, or the files it became.
  virtual std::string place(const std::string& path) const = 0;
  // Of all files, removed ones included.
  virtual std::uint64_t total_bytes() const = 0;
  // The files that were not removed. Packing may have rewritten them.
  virtual std::vector<std::string> files() const = 0;

  // Names of files that were finished since the last call. Any thread may call it, and the next two.
  std::vector<std::string> take_finished() { return finished_.take_new_names(); }
  // Another process is about to replace the finished file `name` by a rewritten one. False: it was removed.
  bool begin_rewrite(const std::string& name) { return finished_.begin_rewrite(name); }
  // It has ended, whether or not it replaced the file.
  void end_rewrite() { finished_.end_rewrite(); }

 protected:
  FinishedFiles finished_;
};

}  // namespace tacho::record
