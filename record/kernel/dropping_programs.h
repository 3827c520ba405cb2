// BPF programs that make perf events lose tracepoint samples (bpf/object/function_arguments.h): found at
// the start and at the end of a recording, reported to the user, and written into the capture, since the
// kernel counts no loss for what they drop.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bpf/user_object.h"
#include "format/container/environment.h"
#include "record/kernel/kernel_events.h"
#include "record/plan/plan.h"

namespace tacho::record {

struct DroppingProgram {
  format::AttachedProgram program;  // of another process: without an object
  std::vector<std::string> events;  // of this recording, on its tracepoint
};

// Programs of this recording, also where no event is on their tracepoint; of other processes' programs the
// ones on tracepoints that this recording has events on, in so far as the kernel lists them (CAP_PERFMON).
std::vector<DroppingProgram> dropping_programs(const Plan& plan, const KernelEvents& events,
                                               std::span<const bpf::UserObject> objects);

// The line for the user.
std::string warning_of(const DroppingProgram& program);

// The programs of the objects, as a capture lists them, with what they drop; behind them other processes'
// programs.
std::vector<format::AttachedProgram> attached_programs(std::span<const bpf::UserObject> objects,
                                                       std::span<const DroppingProgram> dropping);

}  // namespace tacho::record
