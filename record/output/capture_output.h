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
#include "record/output/record_queue.h"

namespace tacho::record {

class CaptureOutput {
 public:
  CaptureOutput() = default;
  CaptureOutput(const CaptureOutput&) = delete;
  CaptureOutput& operator=(const CaptureOutput&) = delete;
  virtual ~CaptureOutput() = default;

  // Whole records that stay plain (synthesized ones, marks).
  virtual Result<> write_plain(format::Bytes records) = 0;
  // Whole records from a ring.
  virtual Result<> write_records(format::Bytes records) = 0;
  // The same, compressed already as captures have them: samples and records among them; `inflated` bytes.
  virtual Result<> write_packed(format::Bytes packed, std::uint64_t inflated, const RecordCounts& counts) {
    (void)inflated, (void)counts;
    return write_plain(packed);
  }
  // The same within `most_bytes` in all, the end of the capture included. False: there is no room, and
  // nothing was written.
  virtual Result<bool> write_within(format::Bytes records, std::uint64_t most_bytes) {
    (void)most_bytes;
    if (auto written = write_records(records); !written) return std::move(written.error());
    return true;
  }
  // Bytes kept free for the end.
  virtual std::uint64_t closing_room() const { return 0; }
  // A reader of the output now has all that was written.
  virtual Result<> finish_round() = 0;
  // Adds facts known only at the end. The last call of a recording that went well.
  virtual Result<> close(const format::Features& late) = 0;
  // The last call of one that did not: nothing of an unfinished round stays where that can be helped.
  virtual Result<> close_after_failure() = 0;
  // After that: what can be read of the records that were handed over, of which those in `rounds` were in
  // whole rounds. Nothing: there is no file.
  virtual std::optional<RecordCounts> kept(const RecordCounts& rounds) const { return rounds; }
  // As stored, so far; of a series its present file.
  virtual std::uint64_t bytes() const = 0;

  // Where all of it is, for messages: `path`, or the files it became.
  virtual std::string place(const std::string& path) const { return path; }
  virtual std::uint64_t total_bytes() const { return bytes(); }

  // Of a series of files (record/session/capture_series.h): describes what runs, and then begins the next
  // file.
  virtual Result<> prepare_next() { return Done{}; }
  virtual Result<> begin_next() { return Done{}; }
  // Ends the open file after the last record.
  virtual Result<> finish() { return Done{}; }
  // Names of files that were finished since the last call; from any thread.
  virtual std::vector<std::string> take_finished() { return {}; }
};

// A file, readable at every moment (format/container/capture_writer.h).
Result<std::unique_ptr<CaptureOutput>> open_file_output(const std::string& path,
                                                        const format::EventSet& events,
                                                        format::Features features,
                                                        const format::WriteOptions& options);
// perf's pipe form, into a descriptor that need not be a pipe.
Result<std::unique_ptr<CaptureOutput>> open_pipe_output(format::Fd out, const format::EventSet& events,
                                                        format::Features features,
                                                        const format::WriteOptions& options);

// Captures that a recording finished, each under a name with its time.

class FinishedFiles {
 public:
  // `path`: of each while it is written. It is named PATH.TIME then. `most`: files in all, including the
  // one that is being written; 0: all are kept.
  FinishedFiles(std::string path, std::size_t most) : path_(std::move(path)), most_(most) {}

  // The file at the path is finished: names it, never over another.
  Result<> add();
  // Another one will be written: removes the oldest files of this recording, as far as there are too many.
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
