// The record loop: rings to the writing thread, round by round, until something ends the recording.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "record/kernel/kernel_events.h"
#include "record/objects/channels.h"
#include "record/options/options.h"
#include "record/options/time_options.h"
#include "record/output/capture_output.h"
#include "record/output/record_walk.h"
#include "record/output/writing_thread.h"
#include "record/session/control.h"
#include "record/session/cpu_hotplug.h"
#include "record/session/pinned_files.h"
#include "record/session/switch_events.h"
#include "record/session/workload.h"
#include "record/stacks/stack_unwinding.h"

namespace tacho::record {

struct LoopReport {
  RecordCounts counts;
  RecordCounts kept;                // of it, what stands in whole rounds of the file
  std::uint64_t wakeups = 0;        // by a ring
  std::uint64_t switch_events = 0;  // of --switch-output-event that came
  std::uint64_t merged_switches =
      0;  // of them, the ones that came while a file was being started: one starts for all
  Channels::LeftOut left_out;         // of BPF objects; set by the loop's caller
  std::optional<int> command_status;  // when it ended
  bool command_left_running = false;  // it did not end when signalled
  std::optional<Error> failure;       // of writing, or of the rings
  Limit limit = Limit::None;          // what ended the recording, if one did
  // The disk holds the writing thread and does not let go. The writer is still in use: the process can only
  // be left, without destroying anything (leave_stuck()).
  bool writer_is_stuck = false;
};

class RecordLoop {
 public:
  // Lines for the user, while the loop waits for something.
  using Say = std::function<void(std::string_view)>;

  // Parts of a recording; all of them must outlive the loop.
  struct Parts {
    KernelEvents& events;
    CaptureOutput& output;
    const StopSignals& signals;
    Workload* workload = nullptr;
    Control* control = nullptr;
    ChannelRings* channels = nullptr;
    Summaries* summaries = nullptr;
    TargetFilter* target_filter = nullptr;  // what every piece of a ring goes through
    StackUnwinding* stacks = nullptr;
    FilePinner* pinner = nullptr;
    SwitchEvents* switches = nullptr;
    Schedule schedule;
    SwitchRule switch_rule = {};
    OutputLimits limits = {};
    std::optional<RingCompressor> compressor =
        {};  // where the output takes records that are packed (write_packed)
    Closing closing;
    std::function<void()> on_switch = {};  // another file was begun
    // A CPU came online: opens its events, and enables the ones that are enabled now.
    CpuHotplug::ReopenCpu reopen_cpu = {};
    std::vector<int> later_cpus = {};        // that were offline when the events were opened
    std::function<void()> drop_rights = {};  // nothing will be opened any more; before a thread is started
    std::function<Result<>()> at_end = {};   // once, when the recording is over, before events are disabled
    Say say;
  };

  // Makes all that the loop needs (descriptors, the writing thread), so that a refusal is reported before
  // anything runs. Only the loop may use the output until run() is over.
  static Result<RecordLoop> create(Parts parts);
  RecordLoop(RecordLoop&&) noexcept;
  RecordLoop& operator=(RecordLoop&&) = delete;
  RecordLoop(const RecordLoop&) = delete;
  RecordLoop& operator=(const RecordLoop&) = delete;
  ~RecordLoop();

  // Records until the command ends, a signal, a command or the time stops it, or every watched task is
  // gone. The times of the schedule count from this call. Then disables the events, takes the rest and
  // waits for the disk: 30 s at most, and a second signal ends the waiting earlier. Once only.
  LoopReport run();

 private:
  class Loop;
  explicit RecordLoop(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace tacho::record
