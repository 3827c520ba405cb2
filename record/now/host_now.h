// A capture in a memfd, shown by tacho-report: `tacho stacks` and `tacho bpf` without a file write their
// snapshot there.
#pragma once

#include <string>
#include <vector>

#include "format/base/file.h"
#include "format/container/capture_writer.h"
#include "record/session/workload.h"

namespace tacho::record {

Result<format::Fd> memory_for_capture();

// A writer into `memory`, which stays open for show_capture().
Result<format::CaptureWriter> capture_in_memory(const format::Fd& memory, const format::EventSet& events,
                                                format::Features features);

// Runs tacho-report with `words` (its path first) and `memory` as its input, until it ends or a signal of
// `signals` arrives. With a null `memory`, `words` name the input. Returns the exit status.
Result<int> show_capture(std::vector<std::string> words, const format::Fd* memory, StopSignals& signals);

}  // namespace tacho::record
