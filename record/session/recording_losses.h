// The sum of a recording's losses: in the kernel's rings, in ring buffers, in BPF programs.
#pragma once

#include <string>
#include <vector>

#include "format/container/environment.h"
#include "record/kernel/losses.h"
#include "record/objects/channels.h"
#include "record/opened_recording.h"
#include "record/output/record_counts.h"

namespace tacho::record {

// Losses of each event, in the kernel's rings and in ring buffers of BPF objects. `channels`: null before
// they are open, and with --overwrite.
std::vector<Losses> recording_losses(const OpenedRecording& recording, const Channels* channels);

// These losses as the capture has them: with names of events and cgroups (`cgroups`: of the command line),
// and the times of the kernel's reports.
format::RecordingLosses losses_in_capture(const std::vector<Losses>& losses, const RecordCounts& counts,
                                          const OpenedRecording& recording,
                                          const std::vector<std::string>& cgroups);

}  // namespace tacho::record
