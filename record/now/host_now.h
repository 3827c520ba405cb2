// This host as it is now: `tacho bpf` without a capture, the BPF programs that are loaded, and `tacho
// stacks`, the stack of every thread. Both write a capture into memory and let tacho-report show it.
#pragma once

#include <string>
#include <vector>

#include "format/base/file.h"
#include "format/container/capture_writer.h"
#include "record/session/pinned_files.h"
#include "record/session/workload.h"

namespace tacho::record {

// The commands. `arguments`: those after the command's name. `command_line`: all arguments, for the capture's
// header. Both return the exit status. run_bpf() passes all but --interval to tacho-report.
int run_bpf(const std::vector<std::string>& arguments, const std::vector<std::string>& command_line);
int run_stacks(const std::vector<std::string>& arguments, const std::vector<std::string>& command_line);

Result<format::Fd> memory_for_capture();

// A writer into `memory`, which stays open for show_capture().
Result<format::CaptureWriter> capture_in_memory(const format::Fd& memory, const format::EventSet& events,
                                                format::Features features);

// Runs tacho-report with `words` (its path first) and `memory` as its input, until it ends; a signal of
// `signals` ends it. With a null `memory`, `words` name the input. `pinned` may be empty. Returns the exit
// status.
Result<int> show_capture(std::vector<std::string> words, const format::Fd* memory, const PinnedFiles& pinned,
                         StopSignals& signals);

}  // namespace tacho::record
