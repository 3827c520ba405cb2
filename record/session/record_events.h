// All steps of a recording, one after another.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "record/host/foreign_reader.h"
#include "record/options/options.h"
#include "record/session/closing_lines.h"
#include "record/session/packing.h"
#include "record/session/pinned_files.h"
#include "record/session/workload.h"

namespace tacho::record {

struct RecordingResult {
  int status = 0;         // of this program
  bool is_whole = false;  // the capture
  std::optional<CaptureFacts> captured = {};
  Copies copies = Copies::None;
  std::vector<std::string> unpacked = {};  // of several files: those without packed names
  int stop_signal = 0;                     // that ended it; 0: none did
};

// The state of the capture after the recording failed.
enum class FileState : std::uint8_t { None, Open, Closed };

Result<RecordingResult> record_events(const RecordOptions& options,
                                      const std::vector<std::string>& command_line,
                                      const std::shared_ptr<ForeignReader>& reader, StopSignals& signals,
                                      FileState& file_state, FilePinner* pinner = nullptr);

// A failed recording. If a signal came before the recording began: the status of a program that it ended.
int fail_recording(const StopSignals& signals, const Error& error, std::string_view command = "record");

}  // namespace tacho::record
