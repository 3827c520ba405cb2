// What stands in a capture before its first sample.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "format/features.h"
#include "format/result.h"
#include "record/kernel/kernel_events.h"
#include "record/messages.h"
#include "record/opened_recording.h"
#include "record/options.h"
#include "record/output/capture_output.h"

namespace tacho::record {

// Those that run already, as far as they are watched.
std::vector<int> watched_processes(const OpenedRecording& recording, const RecordOptions& options);
// Unwind tables are built from here on, beside all that comes before the first sample.
void build_tables(const OpenedRecording& recording, const RecordOptions& options);

// Creates the file, or begins the pipe, and writes what stands before the first sample.
Result<std::unique_ptr<CaptureOutput>> begin_capture(const OpenedRecording& recording, KernelEvents& events,
                                                     const RecordOptions& options,
                                                     const std::vector<std::string>& command_line,
                                                     const Messages& messages);

// What another file of the same recording begins with.
struct CaptureStart {
  format::Features features;
  std::vector<std::byte> records;
  std::vector<std::string> notes;  // what could not be had
};
// Whether a capture may be made at the path, and --min-free leaves room for it.
Result<> check_place(const RecordOptions& options);
// As everything is now; the sideband tells of what comes meanwhile.
Result<CaptureStart> describe_now(const OpenedRecording& recording, const RecordOptions& options,
                                  const std::vector<std::string>& command_line);

// What stands in a capture before its first sample must leave room for some: else it is removed.
Result<> check_room(const CaptureOutput& output, const RecordOptions& options);

}  // namespace tacho::record
