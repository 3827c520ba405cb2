// The steps of a recording, in the order that main() takes them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bpf/user_object.h"
#include "format/capture_writer.h"
#include "format/result.h"
#include "format/tracing_data.h"
#include "record/events/target.h"
#include "record/host/host.h"
#include "record/kernel/dropping_programs.h"
#include "record/kernel/kernel_events.h"
#include "record/messages.h"
#include "record/options.h"
#include "record/output/capture_head.h"
#include "record/plan.h"
#include "record/pump.h"
#include "record/workload.h"

namespace tacho::record {

// Everything that was asked for, found to exist, and not yet started.
struct Prepared {
  Host host;
  std::vector<bpf::UserObject> objects;
  format::TracingData tracing;
  TargetTasks tasks;
  std::vector<format::Fd> cgroups;  // folders, which the plan's events name
  Plan plan;
  std::optional<Workload> workload;
  std::vector<DroppingProgram> dropping;  // once the events are open
  std::function<bool()> stop;             // whether a signal came; asked wherever the start may take long
};
Result<Prepared> prepare(const RecordOptions& options, const Messages& messages, std::function<bool()> stop);

// Loads and attaches the programs, opens the events and connects both; nothing is sampled yet.
Result<KernelEvents> open_events(Prepared& prepared, const Messages& messages);

// Creates the file and writes what stands before the first sample.
Result<format::CaptureWriter> begin_capture(const Prepared& prepared, KernelEvents& events,
                                            const RecordOptions& options,
                                            const std::vector<std::string>& command_line,
                                            const Messages& messages);

// Enables the events, lets the command go, records to the end, writes the losses and closes the file.
Result<PumpReport> run(Prepared& prepared, KernelEvents& events, format::CaptureWriter& writer,
                       const StopSignals& signals, const Messages& messages);

// The end when the disk holds the writing thread (PumpReport::writer_is_stuck): says so and leaves the
// process, with nothing destroyed that the thread may still use.
[[noreturn]] void leave_stuck(const PumpReport& report, const RecordOptions& options,
                              const Messages& messages);

// Says what became of the file. Gives the exit status.
Result<int> finish(const Prepared& prepared, const KernelEvents& events, format::CaptureWriter& writer,
                   const PumpReport& report, const RecordOptions& options, const Messages& messages);

}  // namespace tacho::record
