// Messages at the end of a recording: its size, its losses, what ended it, and why it may be empty.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "record/events/event_request.h"
#include "record/kernel/kernel_events.h"
#include "record/messages.h"
#include "record/opened_recording.h"
#include "record/options/options.h"
#include "record/output/record_counts.h"
#include "record/session/record_loop.h"

namespace tacho::record {

// A suggested view for each recorder among the events: "open: tacho table --by path,error -i FILE".
std::vector<std::string> first_views(std::span<const EventRequest> events, const std::string& capture);

// Size and samples of a recording: its first closing line.
struct CaptureFacts {
  std::string place;               // the file, or PATH.* of several
  std::vector<std::string> files;  // those of a series that were not removed; empty: one output
  std::uint64_t bytes = 0, samples = 0, lost = 0;
  std::vector<std::string> views;  // suggested views
};
// Printed after packing and redaction; the size is that of the final files.
void report_captured(const CaptureFacts& captured, const RecordOptions& options, const Messages& messages);

// Says that --max-size or --min-free ended the recording, if so.
void report_limit(const LoopReport& report, const RecordOptions& options, const Messages& messages);
// Reports events of --switch-output-event that started no file, if there were any.
void report_merged_switches(const LoopReport& report, const Messages& messages);
// Prints the likely reason why a recording has no samples.
void report_nothing(const OpenedRecording& recording, const RecordOptions& options, const Messages& messages);
// After a failure with --redact: that the file is not redacted; empty without the option.
std::string not_redacted(const RecordOptions& options);

// Warns about lost samples (`lost`: their number), lost sideband records, and skipped runs of BPF programs.
void report_losses(const RecordCounts& counts, std::uint64_t lost, const OpenedRecording& recording,
                   const Channels& channels, const RecordOptions& options, const Messages& messages);

// Names what did not answer (ForeignReader::silent()); empty: all did.
std::string silence_text(std::span<const std::string> silent);

}  // namespace tacho::record
