// The record loop: rings to the writing thread, round by round, until something ends the recording.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "format/base/result.h"
#include "record/objects/channels.h"
#include "record/output/record_queue.h"
#include "record/output/writing_thread.h"
#include "record/session/running_recording.h"
#include "record/session/workload.h"

namespace tacho::record {

struct LoopReport {
  RecordCounts counts;
  RecordCounts kept;                // of them, the ones in complete rounds of the file
  std::uint64_t wakeups = 0;        // by a ring
  std::uint64_t switch_events = 0;  // of --switch-output-event that came
  std::uint64_t merged_switches =
      0;  // of them, the ones that came while a file was being started: one starts for all
  Channels::LeftOut left_out;         // of BPF objects; set by the loop's caller
  std::optional<int> command_status;  // when it ended
  bool command_left_running = false;  // it did not end when signalled
  int stop_signal = 0;                // that ended the recording first; 0: none did
  std::optional<Error> failure;       // of writing, or of the rings
  Limit limit = Limit::None;          // what ended the recording, if one did
  // The writing thread hangs in write() and still uses its data, so the process must exit without destructors
  // (leave_stuck()).
  bool writer_is_stuck = false;
};

class RecordLoop {
 public:
  // Makes all that the loop needs (descriptors, the writing thread), so that a refusal is reported before
  // anything runs. Only the loop may use the output until run() is over.
  // `recording` and `signals` must outlive the loop.
  static Result<RecordLoop> create(RunningRecording& recording, const StopSignals& signals);
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
