// The last samples before something happened. The kernel writes them over and over into its rings
// (--overwrite); only when somebody asks is a capture made of them.
//
// Mappings and names are told once, long before the samples that they explain, so they are kept here, in
// memory: what ran when the keeping began, and what the kernel told since. When that grows too large, what
// runs is read anew; the stretch before is kept, the one before that is forgotten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "format/result.h"
#include "record/capture_series.h"
#include "record/output/capture_output.h"
#include "record/output/finished_files.h"

namespace tacho::record {

class FlightRecorder final : public CaptureOutput {
 public:
  enum class LastName : std::uint8_t { Path, PathAndTime };
  // Snapshots are named PATH.TIME. `last` says whether the capture that the end makes is PATH or has its
  // time, too. `most_log`: bytes of what the kernel told of mappings and names, before what runs is read
  // anew.
  FlightRecorder(std::string path, std::size_t most_files, LastName last, Beginning now,
                 CaptureSeries::Means means, std::size_t most_log = kMostLog);
  ~FlightRecorder() override;

  // All of it stays in memory.
  Result<> write_plain(format::Bytes records) override { return write_records(records); }
  Result<> write_records(format::Bytes records) override;
  Result<> finish_round() override { return Done{}; }
  Result<> close(const format::Features&) override { return Done{}; }
  Result<> close_after_failure() override;
  // What was finished: a capture that failed holds none of the samples, which are written in one round.
  std::optional<RecordCounts> kept(const RecordCounts&) const override;
  std::uint64_t bytes() const override { return 0; }
  std::uint64_t total_bytes() const override { return written_; }
  std::string place(const std::string& path) const override;

  // Makes a capture of the samples that were written since the last one.
  Result<> begin_next() override;
  // The same at the end.
  Result<> finish() override;
  std::vector<std::string> take_finished() override { return finished_.take_news(); }

  static constexpr std::size_t kMostLog = std::size_t{8} << 20;

 private:
  struct Stretch {
    std::vector<std::byte> beginning, log;
  };
  Result<> write_capture();

  std::string path_;
  LastName last_;
  std::size_t most_log_;
  CaptureSeries::Means means_;
  FinishedFiles finished_;
  std::deque<Stretch> stretches_;  // one or two, the older first
  std::vector<std::byte> samples_;
  std::unique_ptr<CaptureOutput> current_;  // while it is written
  std::uint64_t written_ = 0;
  RecordCounts finished_counts_;
  bool has_last_ = false;
};

}  // namespace tacho::record
