// The end of a capture, and captures in several files.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "format/container/environment.h"
#include "format/container/features.h"
#include "record/kernel/kernel_events.h"
#include "record/objects/channels.h"
#include "record/objects/dropping_programs.h"
#include "record/opened_recording.h"
#include "record/output/capture_output.h"
#include "record/output/record_queue.h"
#include "record/session/capture_start.h"

namespace tacho::record {

// Programs that drop events and were loaded after the start.
std::vector<DroppingProgram> new_dropping_programs(const OpenedRecording& recording);

// Losses of each event, in the kernel's rings and in ring buffers of BPF objects. `channels`: null before
// they are open, and with --overwrite.
std::vector<Losses> all_losses(const OpenedRecording& recording, const Channels* channels);

// These losses as the capture has them: with names of events and cgroups (`cgroups`: of the command line),
// and the times of the kernel's reports.
format::RecordingLosses described(const std::vector<Losses>& losses, const RecordCounts& counts,
                                  const OpenedRecording& recording, const std::vector<std::string>& cgroups);

// Writes the end of each file of a recording: losses, and facts known only then.
class CaptureEnd {
 public:
  // The arguments must outlive this.
  CaptureEnd(const OpenedRecording& recording, const Channels* channels,
             const std::vector<std::string>& cgroups)
      : recording_(recording), channels_(channels), cgroups_(cgroups) {}

  // Writes losses since the file before, and facts known only at the end, and closes `output`. `counts`: of
  // its records.
  Result<> write(const RecordCounts& counts, CaptureOutput& output);
  // Losses that are in the files so far, but whose LOST records will be in the next one
  // (format::RecordingLosses::counted_before).
  std::uint64_t counted_before_next() const { return counted_before_next_; }

 private:
  const OpenedRecording& recording_;
  const Channels* channels_;
  const std::vector<std::string>& cgroups_;
  ReportedLost reported_;
  StackCounts reported_stacks_;  // by earlier files
  std::uint64_t in_lost_records_ = 0, counted_before_ = 0, counted_before_next_ = 0;
};

// Captures in several files: --switch-output (CaptureSeries) and snapshots of --overwrite (FlightRecorder).
//
// No record is lost between two files. prepare_next() begins to read the running processes, on a thread of
// its own, since that takes long; sideband records from then on go into the old file and, from memory, to the
// start of the next one. begin_next() starts it when the contents of the rings at that time are written.
class CaptureSeries final : public CaptureOutput {
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
  Result<> write_packed(format::Bytes packed, std::uint64_t inflated, const RecordCounts& counts) override;
  Result<> finish_round() override;
  Result<> close(const format::Features& late) override;
  Result<> close_after_failure() override;
  std::uint64_t bytes() const override;
  // Reads the running processes, unless the last reading is recent and its log short.
  Result<> prepare_next() override;
  bool is_next_prepared() const override { return is_prepared_; }
  Result<> begin_next() override;
  std::string place(const std::string& path) const override {
    return finished_.count() == 0 ? path : finished_.place();
  }
  // Removed files included.
  std::uint64_t total_bytes() const override { return finished_bytes_ + bytes(); }
  std::vector<std::string> files() const override { return finished_.names(); }

  Result<> finish() override;
  std::vector<std::string> take_finished() override { return finished_.take_news(); }
  bool begin_rewrite(const std::string& name) override { return finished_.begin_rewrite(name); }
  void end_rewrite() override { finished_.end_rewrite(); }

 private:
  // The start of a next file: the processes, and the sideband since they began to be read.
  struct Beginning {
    std::optional<CaptureStart> processes;
    std::vector<std::byte> carried;
    std::chrono::steady_clock::time_point began{};
  };
  Result<> take_description();

  FinishedFiles finished_;
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

// Appends the sideband records (mmap, comm, fork, exit) among whole `records` to `sideband`, and all others
// to `others` (null: they are dropped).
void append_sideband(format::Bytes records, std::vector<std::byte>& sideband,
                     std::vector<std::byte>* others = nullptr);

// Flight recorder (--overwrite): the kernel overwrites old samples in its rings, and a capture of the latest
// ones is made on demand.
//
// Mappings and names are recorded once, perhaps long before the samples that they explain, so they are kept
// in memory: the processes at the start, and the sideband since. When this log grows too large, the processes
// are read again and a new interval begins; the previous interval is kept, earlier ones are dropped.
class FlightRecorder final : public CaptureOutput {
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
  Result<> close(const format::Features&) override { return Done{}; }
  Result<> close_after_failure() override;
  // Counts of finished captures: samples are written in one round, so a failed capture has none.
  std::optional<RecordCounts> kept(const RecordCounts&) const override;
  std::uint64_t bytes() const override { return 0; }
  std::uint64_t total_bytes() const override { return written_; }
  std::vector<std::string> files() const override;
  std::string place(const std::string& path) const override;

  // Writes a capture of the samples since the last one.
  Result<> begin_next() override;
  // The same at the end.
  Result<> finish() override;
  std::vector<std::string> take_finished() override { return finished_.take_news(); }
  bool begin_rewrite(const std::string& name) override { return finished_.begin_rewrite(name); }
  void end_rewrite() override { finished_.end_rewrite(); }

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
  FinishedFiles finished_;
  std::deque<Interval> intervals_;  // one or two, the older first
  std::vector<std::byte> samples_;
  std::uint64_t gap_begin_ = ~std::uint64_t{0};  // among the samples
  std::unique_ptr<CaptureOutput> current_;       // the capture that is being written
  std::uint64_t written_ = 0;
  RecordCounts finished_counts_;
  bool has_last_ = false;
};

}  // namespace tacho::record
