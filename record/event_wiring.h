// What open events are joined to: programs that feed them, conditions that they ask, stacks that are walked.
#pragma once

#include <span>

#include "format/result.h"
#include "record/kernel/kernel_events.h"
#include "record/prepared.h"

namespace tacho::record {

// The objects' programs write to those events that are theirs, or run on their samples.
Result<> connect_objects(Prepared& prepared, std::span<const OpenEvent> events);

// All that is to be recorded of a CPU that came on line: opened, joined to what the events of the other CPUs
// are, and enabled where those are. After an error nothing of it is.
Result<KernelEvents::Reopened> open_again(int cpu, Prepared& prepared, KernelEvents& events);

}  // namespace tacho::record
