// Writes the end of a capture: losses, and facts known only then.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "format/container/environment.h"
#include "record/kernel/kernel_events.h"
#include "record/kernel/losses.h"
#include "record/objects/channels.h"
#include "record/opened_recording.h"
#include "record/output/capture_output.h"
#include "record/output/record_walk.h"

namespace tacho::record {

// Programs that drop events and were loaded after the start.
std::vector<DroppingProgram> new_dropping_programs(const OpenedRecording& recording);

// Losses of each event so far, in the kernel's rings and in ring buffers of BPF objects.
// `channels`: null before they are open, and with --overwrite, which has none.
std::vector<Losses> all_losses(const OpenedRecording& recording, const Channels* channels);

// The same with the names of events and cgroups (`cgroups`: as on the command line), and when the kernel
// reported them.
format::RecordingLosses described(const std::vector<Losses>& losses, const RecordCounts& counts,
                                  const OpenedRecording& recording, const std::vector<std::string>& cgroups);

// Ends one file, or several one after another.
class CaptureEnd {
 public:
  // All must outlive it.
  CaptureEnd(const OpenedRecording& recording, const Channels* channels,
             const std::vector<std::string>& cgroups)
      : recording_(recording), channels_(channels), cgroups_(cgroups) {}

  // Writes losses since the file before, and facts known only at the end, and closes `output`. `counts`: of
  // its records.
  Result<> write(const RecordCounts& counts, CaptureOutput& output);

 private:
  const OpenedRecording& recording_;
  const Channels* channels_;
  const std::vector<std::string>& cgroups_;
  ReportedLost reported_;
  StackCounts reported_stacks_;  // in earlier files
};

}  // namespace tacho::record
