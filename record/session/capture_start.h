// Writes the start of a capture: its header, and the running processes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "format/container/features.h"
#include "record/messages.h"
#include "record/opened_recording.h"
#include "record/options/options.h"
#include "record/output/capture_output.h"

namespace tacho::record {

// The recorded processes that are running.
std::vector<int> watched_processes(const OpenedRecording& recording, const RecordOptions& options);
// Starts building unwind tables, in parallel to the steps before the first sample.
void build_tables(const OpenedRecording& recording, const RecordOptions& options);

// Creates the file, or starts the pipe, and writes everything before the first sample.
Result<std::unique_ptr<CaptureOutput>> begin_capture(OpenedRecording& recording, const RecordOptions& options,
                                                     const std::vector<std::string>& command_line,
                                                     const Messages& messages);

// The start of the next file of a series.
struct CaptureStart {
  format::Features features;
  std::vector<std::byte> records;
  std::vector<std::string> notes;  // what is missing
};
// Describes the host and the running processes; sideband records have later changes.
Result<CaptureStart> describe_now(const OpenedRecording& recording, const RecordOptions& options,
                                  const std::vector<std::string>& command_line);

}  // namespace tacho::record
