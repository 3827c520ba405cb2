// A running recording: the open events, channels, control and schedule. The record loop calls it for all
// steps that depend on the command line.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "record/kernel/kernel_events.h"
#include "record/messages.h"
#include "record/objects/channels.h"
#include "record/opened_recording.h"
#include "record/options/options.h"
#include "record/options/time_options.h"
#include "record/output/capture_output.h"
#include "record/output/record_counts.h"
#include "record/session/capture_end.h"
#include "record/session/capture_series.h"
#include "record/session/control.h"
#include "record/session/packing.h"
#include "record/session/pinned_files.h"

namespace tacho::record {

// Whether samples have copies of stacks, which are unwound when a file is finished.
Copies copies_of(const Plan& plan);

// Callbacks that make the further captures of a recording.
CaptureSeries::Callbacks callbacks_of(const OpenedRecording& recording, const Channels* channels,
                                      const RecordOptions& options,
                                      const std::vector<std::string>& command_line);

class RunningRecording {
 public:
  // Opens channels and control pipes, and starts the threads that pin files and build unwind tables, before
  // rights are dropped. `output` is replaced by a CaptureSeries if the options ask for several files. The
  // arguments must outlive the result. `pinner`: pins files for packing; null: nothing is packed.
  static Result<std::unique_ptr<RunningRecording>> start(OpenedRecording& recording,
                                                         std::unique_ptr<CaptureOutput>& output,
                                                         FilePinner* pinner, const RecordOptions& options,
                                                         const std::vector<std::string>& command_line,
                                                         const Messages& messages);
  RunningRecording(const RunningRecording&) = delete;
  RunningRecording& operator=(const RunningRecording&) = delete;

  KernelEvents& events() { return opened_.events; }
  CaptureOutput& output() { return *output_; }
  Workload* workload() { return opened_.workload ? &*opened_.workload : nullptr; }
  Control* control() { return control_ ? &*control_ : nullptr; }
  Channels& channels() { return channels_; }
  const Channels& channels() const { return channels_; }
  StackUnwinding* stacks() { return opened_.stacks.get(); }
  SwitchEvents* switches() { return opened_.switches.get(); }
  FilePinner* pinner() { return pinner_; }
  Schedule& schedule() { return schedule_; }
  const RecordOptions& options() const { return options_; }
  // CPUs that were offline when the events were opened.
  const std::vector<int>& later_cpus() const { return opened_.plan.later_cpus; }

  // Enables samples, unless a delay or a control command will do it, and starts the command.
  Result<> enable();
  // Drops the rights that recording does not need. Call it before a thread is started.
  void drop_rights();
  // A CPU came online: opens its events, and enables the ones that are enabled now.
  Result<KernelEvents::Reopened> reopen_cpu(int cpu);
  // The next file of a series was started.
  void file_begun();
  // Packs names into finished files of a series. Does not wait; call it often.
  void pack_finished();
  // After the recording: the files that have no packed names yet.
  std::vector<std::string> take_unpacked();
  // Runs the programs that emit in-flight calls and waits. Call it once, at the end, before events are
  // disabled.
  Result<> end_objects() const;
  // The records after a capture's last sample: losses and counts. Called on the writing thread.
  Result<> write_end(const RecordCounts& counts);
  // Prints a message while the loop waits.
  void say(std::string_view line) const { messages_.warn(line); }

 private:
  RunningRecording(OpenedRecording& recording, std::unique_ptr<CaptureOutput>& output, FilePinner* pinner,
                   const RecordOptions& options, const Messages& messages, std::optional<Control> control,
                   Schedule schedule, Channels channels, const std::vector<std::string>& command_line);
  void switch_samples(std::span<const std::size_t> switched, Sampling now);
  void switch_objects(std::span<const std::size_t> switched, Sampling now);

  OpenedRecording& opened_;
  CaptureOutput* output_ = nullptr;
  FilePinner* pinner_;
  const RecordOptions& options_;
  const Messages& messages_;
  std::optional<Control> control_;
  Schedule schedule_;
  Channels channels_;
  CaptureEnd end_;
  std::optional<FilePacker> packer_;  // of several files
};

}  // namespace tacho::record
