// The steps of a recording, in the order that record_events() takes them:
// prepare_recording, open_events, run_recording, finish_recording.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/kernel/kernel_events.h"
#include "record/messages.h"
#include "record/objects/channels.h"
#include "record/opened_recording.h"
#include "record/options/options.h"
#include "record/output/capture_output.h"
#include "record/session/closing_lines.h"
#include "record/session/pinned_files.h"
#include "record/session/record_loop.h"
#include "record/session/running_recording.h"

namespace tacho::record {

// Finds the events, targets and programs of the options. `stop`: PreparedRecording::stop.
Result<PreparedRecording> prepare_recording(const RecordOptions& options, const Messages& messages,
                                            std::shared_ptr<ForeignReader> reader,
                                            std::function<bool()> stop);

// Loads and attaches the programs, opens the events and connects them; samples are not enabled yet.
Result<std::unique_ptr<OpenedRecording>> open_events(PreparedRecording prepared, const Messages& messages);

// The output of --overwrite, which writes nothing yet (other outputs: begin_capture()). The arguments must
// outlive the result.
Result<std::unique_ptr<CaptureOutput>> begin_flight(OpenedRecording& recording, const RecordOptions& options,
                                                    const std::vector<std::string>& command_line,
                                                    const Messages& messages);

// A finished recording: its counts, and its channels with their losses.
struct RunResult {
  LoopReport report;
  std::unique_ptr<RunningRecording> running;
};
// Enables the events, starts the command, records to the end, writes the losses and closes the file.
// `pinner`: pins files for packing; null: nothing is packed.
Result<RunResult> run_recording(OpenedRecording& recording, std::unique_ptr<CaptureOutput>& output,
                                FilePinner* pinner, const RecordOptions& options,
                                const std::vector<std::string>& command_line, const StopSignals& signals,
                                const Messages& messages);

// Prints a message and exits, when the writing thread hangs (LoopReport::writer_is_stuck): without
// destructors, since that thread still uses the data.
[[noreturn]] void leave_stuck(const LoopReport& report, const RecordOptions& options,
                              const Messages& messages);

// The result of finish_recording(): the exit status, or a failure and whether the file is closed.
struct FinishResult {
  Result<int> status;
  bool is_closed = true;
  std::optional<CaptureFacts> captured = {};
};
// Prints the closing lines that do not depend on packing (report_captured() prints the others).
FinishResult finish_recording(const OpenedRecording& recording, const RunResult& finished,
                              CaptureOutput& output, const RecordOptions& options, const Messages& messages);

}  // namespace tacho::record
