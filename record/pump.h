// The loop: rings to the writing thread, round by round, until something ends the recording.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "format/capture_writer.h"
#include "format/result.h"
#include "record/kernel/kernel_events.h"
#include "record/output/record_walk.h"
#include "record/stop_signals.h"
#include "record/workload.h"

namespace tacho::record {

struct PumpReport {
  RecordCounts counts;
  RecordCounts kept;                  // of it, what stands in whole rounds of the file
  std::uint64_t wakeups = 0;          // by a ring
  std::optional<int> command_status;  // when it ended
  bool command_left_running = false;  // it did not end when told to
  std::optional<Error> failure;       // of writing, or of the rings
  // The disk holds the writing thread and does not let go. The writer is still in use: the process can only
  // be left, without destroying anything (leave_stuck()).
  bool writer_is_stuck = false;
};

class Pump {
 public:
  // Lines for the user, while the pump waits for something.
  using Say = std::function<void(std::string_view)>;
  // What is written when the last record is: on the writing thread, so that a disk that hangs holds only it.
  using Closing = std::function<Result<>(const RecordCounts& counts)>;

  // Makes all that the loop needs (descriptors, the writing thread), so that a refusal is told before
  // anything runs. What is passed must outlive the pump; nobody else may use the capture's writer until run()
  // is over.
  static Result<Pump> create(KernelEvents& events, format::CaptureWriter& writer, Workload* workload,
                             const StopSignals& signals, Closing closing, Say say);
  Pump(Pump&&) noexcept;
  Pump& operator=(Pump&&) = delete;
  Pump(const Pump&) = delete;
  Pump& operator=(const Pump&) = delete;
  ~Pump();

  // Records until the command ends, a signal says stop, or every watched task is gone. Then disables the
  // events, takes what is left and waits for the disk: 30 s at most, and a second signal ends the waiting
  // earlier. Once only.
  PumpReport run();

 private:
  class Loop;
  explicit Pump(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace tacho::record
