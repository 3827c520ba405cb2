// Captures in several files, one after another: --switch-output.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
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
#include "record/session/capture_start.h"

namespace tacho::record {

// No record is lost between two files. prepare_next() begins to read the running processes, on a thread of
// its own, since that takes long; sideband records from then on go into the old file and, from memory, to the
// start of the next one. begin_next() starts it when the contents of the rings at that time are written.
class CaptureSeries final : public CaptureOutput, public FileSeries {
 public:
  struct Callbacks {
    std::function<Result<CaptureStart>()> describe;                                // the running processes
    std::function<Result<std::unique_ptr<CaptureOutput>>(format::Features)> open;  // a new file at the path
    std::function<Result<>(const RecordCounts&, CaptureOutput&)> end;              // CaptureEnd::write
  };
  // `first` is the open file at `path`. A finished file is renamed to PATH.TIME. `most_files`: the maximum of
  // files, including the open one; older ones are removed. 0: no maximum.
  CaptureSeries(const std::string& path, std::size_t most_files, std::unique_ptr<CaptureOutput> first,
                Callbacks callbacks);
  ~CaptureSeries() override;

  Result<> write_plain(format::Bytes records) override;
  Result<> write_records(format::Bytes records) override;
  void note_gap(std::uint64_t begin) override { counts_.lost_first = std::min(counts_.lost_first, begin); }
  Result<> finish_round() override;
  Result<> close_capture(const format::Features& late) override;
  Result<> close_after_failure() override;
  std::uint64_t bytes() const override;
  FileSeries* series() override { return this; }
  // Reads the running processes, unless the last reading is recent and its log short.
  Result<> prepare_next() override;
  bool is_next_prepared() const override { return is_prepared_; }
  Result<> begin_next() override;
  std::string place(const std::string& path) const override {
    return finished_.count() == 0 ? path : finished_.place();
  }
  std::uint64_t total_bytes() const override { return finished_bytes_ + bytes(); }
  std::vector<std::string> files() const override { return finished_.names(); }

  Result<> finish() override;

 private:
  // The start of a next file: the processes, and the sideband since they began to be read.
  struct Beginning {
    std::optional<CaptureStart> processes;
    std::vector<std::byte> carried;
    std::chrono::steady_clock::time_point began{};
  };
  Result<> take_description();

  std::unique_ptr<CaptureOutput> current_;  // nothing between two files
  Callbacks callbacks_;
  RecordCounts counts_;  // of the open file
  // It is read again when it is old or long, and not for each file: a file can fill up faster than processes
  // are read. Until `newer_` is complete, `next_` is used.
  Beginning next_, newer_;
  std::future<Result<CaptureStart>> description_;  // for newer_
  std::atomic<bool> is_prepared_ = false;          // next_ or newer_ is complete
  std::uint64_t finished_bytes_ = 0;
};

}  // namespace tacho::record
