// Output of a recording: a file, a pipe, or several files one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/container/capture_writer.h"
#include "format/container/features.h"
#include "format/records/event_set.h"
#include "record/output/record_counts.h"

namespace tacho::record {

class FileSeries;  // file_series.h

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
  virtual Result<> close_capture(const format::Features& late) = 0;
  // The last call of a failed recording: drops the unfinished round if possible.
  virtual Result<> close_after_failure() = 0;
  // After a failure: the counts of the records that a reader finds in the file. `rounds`: counts of the whole
  // rounds that were written. nullopt: there is no file.
  virtual std::optional<RecordCounts> kept(const RecordCounts& rounds) const { return rounds; }
  // As stored, so far; for a series, of the current file.
  virtual std::uint64_t bytes() const = 0;
  // The files, if there are several one after another; null: one output.
  virtual FileSeries* series() { return nullptr; }
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

}  // namespace tacho::record
