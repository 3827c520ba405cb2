// The header of a capture: the host, its kernel and BPF programs, and the events of the plan.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bpf/loaded_object.h"
#include "bpf/object/loaded_programs.h"
#include "format/base/result.h"
#include "format/container/environment.h"
#include "format/container/features.h"
#include "format/extensions/tracing_data.h"
#include "record/host/running_kernel.h"
#include "record/plan/plan.h"

namespace tacho::record {

// The header, and what the kernel's records before the first sample are made of.
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
                                     std::span<const bpf::LoadedObject> objects, format::TracingData tracing,
                                     const std::vector<std::string>& command_line);
// Adds the instructions, BTF and maps of loaded programs to `environment`; at most 4 MiB of BTF.
void add_loaded_programs(std::span<const bpf::LoadedProgram> programs, format::Environment& environment);
// Adds the loaded BPF programs; `attached` lists the ones of this recording. Called after the sideband is
// enabled, so that no program is missed.
void add_programs(const Plan& plan, std::span<const bpf::LoadedObject> objects,
                  std::vector<format::AttachedProgram> attached, CaptureHead& head);

}  // namespace tacho::record
