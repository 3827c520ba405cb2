// A capture in memory, which tacho-report shows: for commands that show what is there now.
#pragma once

#include <string>
#include <vector>

#include "format/base/file.h"
#include "format/container/capture_writer.h"
#include "record/session/workload.h"

namespace tacho::record {

Result<format::Fd> memory_for_capture();

// `memory` stays open: it is to be shown.
Result<format::CaptureWriter> capture_in_memory(const format::Fd& memory, const format::EventSet& events,
                                                format::Features features);

// Runs tacho-report with `words`, its path first, to its end or to a signal that stops recordings. It gets
// `memory` as its input; null: `words` name one. Its exit status.
Result<int> show_capture(std::vector<std::string> words, const format::Fd* memory, StopSignals& signals);

}  // namespace tacho::record
