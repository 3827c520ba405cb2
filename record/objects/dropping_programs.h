// BPF programs that make perf events lose samples of a tracepoint.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bpf/loaded_object.h"
#include "format/container/environment.h"
#include "record/kernel/kernel_events.h"
#include "record/plan/plan.h"

namespace tacho::record {

// A BPF program that makes perf events lose tracepoint samples (bpf/object/kernel_btf.h), for which the
// kernel counts no loss. Such programs are looked for at the start and at the end of a recording, reported to
// the user, and written into the capture.
struct DroppingProgram {
  format::AttachedProgram program;  // of another process: without an object
  std::vector<std::string> events;  // of this recording, on its tracepoint
};

// Programs of this recording, even if no event is on their tracepoint; and programs of other processes on
// tracepoints of the plan's events, as far as the kernel lists them (CAP_PERFMON).
std::vector<DroppingProgram> dropping_programs(const Plan& plan, const KernelEvents& events,
                                               std::span<const bpf::LoadedObject> objects);

// A message about the program.
std::string warning_of(const DroppingProgram& program);

// The programs of the objects, and those of other processes that drop events, for the capture's header.
std::vector<format::AttachedProgram> attached_programs(std::span<const bpf::LoadedObject> objects,
                                                       std::span<const DroppingProgram> dropping);

}  // namespace tacho::record
