// Writes the start of a capture: the header, the running processes, and stacks of sleeping threads.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bpf/attach/pid_numbers.h"
#include "bpf/object/loaded_programs.h"
#include "bpf/user_object.h"
#include "format/base/result.h"
#include "format/container/features.h"
#include "record/events/target.h"
#include "record/host/foreign_reader.h"
#include "record/host/running_kernel.h"
#include "record/kernel/kernel_events.h"
#include "record/messages.h"
#include "record/opened_recording.h"
#include "record/options/options.h"
#include "record/output/capture_output.h"
#include "record/plan/plan.h"

namespace tacho::record {

// Puts the user stacks of the target's sleeping threads into the maps of objects that have such a map
// (programs/recorders/before.h), for waits that began before the recording. A BPF program can only walk the
// stack of the running thread, so these are unwound here, from copies, without stopping the threads. `stop`:
// a signal came. `numbers`: for the kernel's tids, by which the maps have them. The error says what is
// missing.
Result<> give_sleeping_stacks(std::span<const bpf::UserObject> objects,
                              const std::optional<bpf::PidNumbers>& numbers, const Target& target,
                              const TargetTasks& tasks, const std::shared_ptr<ForeignReader>& reader,
                              const std::function<bool()>& stop);

// The header of a capture, and the records before its first sample.
struct CaptureHead {
  format::Features features;
  std::optional<KernelText> kernel_text;
  std::vector<KernelModule> modules;
  std::vector<BpfImage> images;
  std::vector<bpf::LoadedProgram> programs;
  std::vector<std::string> notes;  // what is missing, with the consequence
};

// Reads the state of the host. `kernel` must be read after all BPF programs are loaded, since the kernel adds
// symbols for them.
Result<CaptureHead> describe_capture(const Plan& plan, KernelSymbols kernel,
                                     std::span<const bpf::UserObject> objects, format::TracingData tracing,
                                     const std::vector<std::string>& command_line);
// Adds the instructions, BTF and maps of loaded programs to `environment`; at most 4 MiB of BTF.
void add_loaded_programs(std::span<const bpf::LoadedProgram> programs, format::Environment& environment);
// Adds the loaded BPF programs; `attached` lists the ones of this recording. Called after the sideband is
// enabled, so that no program is missed.
void add_programs(const Plan& plan, std::span<const bpf::UserObject> objects,
                  std::vector<format::AttachedProgram> attached, CaptureHead& head);

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
// Checks that a capture can be made at the path, and --min-free.
Result<> check_place(const RecordOptions& options);
// Describes the host and the running processes; sideband records have later changes.
Result<CaptureStart> describe_now(const OpenedRecording& recording, const RecordOptions& options,
                                  const std::vector<std::string>& command_line);

// Removes the capture if its start leaves no room for samples (--max-size).
Result<> check_size(const CaptureOutput& output, const RecordOptions& options);
// Removes a capture that has no sample.
void remove_output(const RecordOptions& options);
// The folder of the capture.
std::string folder_of(const RecordOptions& options);

}  // namespace tacho::record
