// The end of a capture: its losses, and facts that are known only then.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/kernel/losses.h"
#include "record/objects/channels.h"
#include "record/objects/dropping_programs.h"
#include "record/opened_recording.h"
#include "record/output/capture_output.h"
#include "record/output/record_counts.h"
#include "record/stacks/stack_unwinding.h"

namespace tacho::record {

// Programs that drop events and were loaded after the start.
std::vector<DroppingProgram> new_dropping_programs(const OpenedRecording& recording);

// Writes the end of each file of a recording: losses, and facts known only then.
class CaptureEnd {
 public:
  // The arguments must outlive this.
  CaptureEnd(const OpenedRecording& recording, const Channels* channels,
             const std::vector<std::string>& cgroups)
      : recording_(recording), channels_(channels), cgroups_(cgroups) {}

  // Writes losses since the file before, and facts known only at the end, and closes `output`. `counts`: of
  // its records.
  Result<> write(const RecordCounts& counts, CaptureOutput& output);
  // Losses that are in the files so far, but whose LOST records will be in the next one
  // (format::RecordingLosses::counted_before).
  std::uint64_t counted_before_next() const { return counted_before_next_; }

 private:
  const OpenedRecording& recording_;
  const Channels* channels_;
  const std::vector<std::string>& cgroups_;
  ReportedLost reported_;
  StackCounts reported_stacks_;  // by earlier files
  std::uint64_t in_lost_records_ = 0, counted_before_ = 0, counted_before_next_ = 0;
};

}  // namespace tacho::record
