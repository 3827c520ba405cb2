// The loop: rings to the writing thread, round by round, until something ends the recording.
#pragma once

#include <cstdint>
#include <optional>

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
};

// Records until the command ends, a signal says stop, or every watched task is gone. Then disables the events
// and takes what is left. Nobody else may use `writer` meanwhile; afterwards it is the caller's again.
PumpReport pump(KernelEvents& events, format::CaptureWriter& writer, Workload* workload,
                const StopSignals& signals);

}  // namespace tacho::record
