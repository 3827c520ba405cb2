// The flight recorder (--overwrite): captures of the latest samples.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/container/features.h"
#include "record/output/capture_output.h"
#include "record/output/file_series.h"
#include "record/output/record_counts.h"
#include "record/session/capture_series.h"
#include "record/session/capture_start.h"

namespace tacho::record {

// The kernel overwrites old samples in its rings, and a capture of the latest
// ones is made on demand.
//
// Mappings and names are recorded once, perhaps long before the samples that they explain, so they are kept
// in memory: the processes at the start, and the sideband since. When this log grows too large, the processes
// are read again and a new interval begins; the previous interval is kept, earlier ones are dropped.
class FlightRecorder final : public CaptureOutput, public FileSeries {
 public:
  enum class LastName : std::uint8_t { Path, PathAndTime };
  // Snapshots are named PATH.TIME; `last`: the name of the final capture. `most_log`: bytes of sideband in an
  // interval.
  FlightRecorder(std::string path, std::size_t most_files, LastName last, CaptureStart now,
                 CaptureSeries::Callbacks callbacks, std::size_t most_log = kMostLog);
  ~FlightRecorder() override;

  // The records are kept in memory.
  Result<> write_plain(format::Bytes records) override { return write_records(records); }
  Result<> write_records(format::Bytes records) override;
  void note_gap(std::uint64_t begin) override { gap_begin_ = std::min(gap_begin_, begin); }
  Result<> finish_round() override { return Done{}; }
  Result<> close_capture(const format::Features&) override { return Done{}; }
  Result<> close_after_failure() override;
  // Counts of finished captures: samples are written in one round, so a failed capture has none.
  std::optional<RecordCounts> kept(const RecordCounts&) const override;
  std::uint64_t bytes() const override { return 0; }
  FileSeries* series() override { return this; }
  std::uint64_t total_bytes() const override { return written_; }
  std::vector<std::string> files() const override;
  std::string place(const std::string& path) const override;

  // Writes a capture of the samples since the last one.
  Result<> begin_next() override;
  // The same at the end.
  Result<> finish() override;

  static constexpr std::size_t kMostLog = std::size_t{8} << 20;

 private:
  struct Interval {
    std::vector<std::byte> beginning, log;
  };
  Result<> write_capture();

  std::string path_;
  LastName last_;
  std::size_t most_log_;
  CaptureSeries::Callbacks callbacks_;
  std::deque<Interval> intervals_;  // one or two, the older first
  std::vector<std::byte> samples_;
  std::uint64_t gap_begin_ = ~std::uint64_t{0};  // among the samples
  std::unique_ptr<CaptureOutput> current_;       // the capture that is being written
  std::uint64_t written_ = 0;
  RecordCounts finished_counts_;
  bool has_last_ = false;
};

}  // namespace tacho::record
