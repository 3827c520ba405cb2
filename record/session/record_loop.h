// The record loop: rings to the writing thread, round by round, until something ends the recording.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "format/base/result.h"
#include "record/objects/channels.h"
#include "record/output/record_counts.h"
#include "record/output/writing_thread.h"
#include "record/session/running_recording.h"
#include "record/session/workload.h"

namespace tacho::record {

struct LoopReport {
  RecordCounts counts;
  RecordCounts kept;                  // those in complete rounds of the file
  std::uint64_t wakeups = 0;          // by rings
  std::uint64_t switch_events = 0;    // events of --switch-output-event
  std::uint64_t merged_switches = 0;  // switch events during the start of a file: no further file
  Channels::LeftOut left_out;         // events that channels left out; set by the loop's caller
  std::optional<int> command_status;  // wait status; nothing: it has not ended
  bool command_left_running = false;  // it did not end after the signal
  int stop_signal = 0;                // the signal that ended the recording; 0: none
  std::optional<Error> failure;       // of writing, or a damaged ring
  Limit limit = Limit::None;          // the limit that ended the recording
  // The writing thread hangs in write() and still uses its data, so the process must exit without destructors
  // (leave_stuck()).
  bool writer_is_stuck = false;
};

class RecordLoop {
 public:
  // Makes the epoll set and the writing thread, so that errors are reported before anything runs. Until the
  // end of run_loop() only the loop may use the output. `recording` and `signals` must outlive the loop.
  static Result<RecordLoop> create(RunningRecording& recording, const StopSignals& signals);
  RecordLoop(RecordLoop&&) noexcept;
  RecordLoop& operator=(RecordLoop&&) = delete;
  RecordLoop(const RecordLoop&) = delete;
  RecordLoop& operator=(const RecordLoop&) = delete;
  ~RecordLoop();

  // Records until the workload or all recorded tasks have ended, or a signal, a control command or the
  // schedule (whose times start at this call) stops it. Then disables the events, drains the rings and waits
  // for the disk: at most 30 s, or until a second signal. Call it once.
  LoopReport run_loop();

 private:
  class Loop;
  explicit RecordLoop(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace tacho::record
