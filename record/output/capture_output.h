// Output of a recording: a file, a pipe, or several files one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/container/capture_writer.h"
#include "format/container/features.h"
#include "format/records/event_set.h"
#include "record/output/record_counts.h"

namespace tacho::record {

class CaptureOutput {
 public:
  CaptureOutput() = default;
  CaptureOutput(const CaptureOutput&) = delete;
  CaptureOutput& operator=(const CaptureOutput&) = delete;
  virtual ~CaptureOutput() = default;

  // Whole records that stay uncompressed (synthesized records, round marks).
  virtual Result<> write_plain(format::Bytes records) = 0;
  // Whole records from a ring.
  virtual Result<> write_records(format::Bytes records) = 0;
  // The same, already compressed in the form of captures: samples and records among them; `inflated` bytes.
  virtual Result<> write_packed(format::Bytes packed, std::uint64_t inflated, const RecordCounts& counts) {
    (void)inflated, (void)counts;
    return write_plain(packed);
  }
  // The same, if the capture with its end stays within `most_bytes`. False: it would not, and nothing was
  // written.
  virtual Result<bool> write_within(format::Bytes records, std::uint64_t most_bytes) {
    (void)most_bytes;
    if (auto written = write_records(records); !written) return std::move(written.error());
    return true;
  }
  // Bytes reserved for the end.
  virtual std::uint64_t closing_room() const { return 0; }
  // Of the next records: samples are missing after this time, as LOST records among them say.
  virtual void note_gap(std::uint64_t begin) { (void)begin; }
  // Ends a round: a reader of the output now has everything that was written.
  virtual Result<> finish_round() = 0;
  // Adds facts that are known at the end. The last call of a successful recording.
  virtual Result<> close(const format::Features& late) = 0;
  // The last call of a failed recording: drops the unfinished round if possible.
  virtual Result<> close_after_failure() = 0;
  // After a failure: the counts of the records that a reader finds in the file. `rounds`: counts of the whole
  // rounds that were written. nullopt: there is no file.
  virtual std::optional<RecordCounts> kept(const RecordCounts& rounds) const { return rounds; }
  // As stored, so far; for a series, of the current file.
  virtual std::uint64_t bytes() const = 0;

  // The name of the output for messages: `path`, or the files it became.
  virtual std::string place(const std::string& path) const { return path; }
  virtual std::uint64_t total_bytes() const { return bytes(); }
  // The files of a series that were not removed. Packing may have rewritten them.
  virtual std::vector<std::string> files() const { return {}; }

  // Of a series of files (record/session/capture_series.h): begins to describe the running processes, and,
  // when they are described, begins the next file. Any thread may call is_next_prepared().
  virtual Result<> prepare_next() { return Done{}; }
  virtual bool is_next_prepared() const { return true; }
  virtual Result<> begin_next() { return Done{}; }
  // Ends the open file after the last record.
  virtual Result<> finish() { return Done{}; }
  // Names of files that were finished since the last call. Any thread may call it, and the next two.
  virtual std::vector<std::string> take_finished() { return {}; }
  // Another process is about to replace the finished file `name` by a rewritten one. False: it was removed.
  virtual bool begin_rewrite(const std::string& name) {
    (void)name;
    return false;
  }
  // It has ended, whether or not it replaced the file.
  virtual void end_rewrite() {}
};

// A file, readable at every moment (format/container/capture_writer.h).
Result<std::unique_ptr<CaptureOutput>> open_file_output(const std::string& path,
                                                        const format::EventSet& events,
                                                        format::Features features,
                                                        const format::WriteOptions& options);
// perf's pipe form, into a descriptor that need not be a pipe. `reader`: pidfd of the process that reads it,
// whose end ends a write (EPIPE), also while another process keeps the pipe open; -1: unknown. With it `out`
// must not block (O_NONBLOCK).
Result<std::unique_ptr<CaptureOutput>> open_pipe_output(format::Fd out, const format::EventSet& events,
                                                        format::Features features,
                                                        const format::WriteOptions& options, int reader = -1);

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
  // As in CaptureOutput. Any thread may call them.
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

}  // namespace tacho::record
