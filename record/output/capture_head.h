// What stands in a capture before its first sample: everything a reader elsewhere will need to know.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bpf/loaded_programs.h"
#include "bpf/user_object.h"
#include "format/features.h"
#include "format/result.h"
#include "record/host/kernel_symbols.h"
#include "record/host/running_kernel.h"
#include "record/plan.h"

namespace tacho::record {

struct CaptureHead {
  format::Features features;
  std::optional<KernelText> kernel_text;
  std::vector<KernelModule> modules;
  std::vector<BpfImage> images;
  std::vector<bpf::LoadedProgram> programs;
  std::vector<std::string> notes;  // what could not be had, and what follows from it
};

// Reads the host as it is now. `kernel` was read after all BPF programs were loaded that make the kernel name
// code of its own.
Result<CaptureHead> describe_capture(const Plan& plan, KernelSymbols kernel,
                                     std::span<const bpf::UserObject> objects, format::TracingData tracing,
                                     const std::vector<std::string>& command_line);
// Adds the BPF programs in the kernel, and ours among them, of which `attached` is the list. From the moment
// it is called the kernel itself must already be telling of those that come and go.
void add_programs(const Plan& plan, std::span<const bpf::UserObject> objects,
                  std::vector<format::AttachedProgram> attached, CaptureHead& head);

}  // namespace tacho::record
