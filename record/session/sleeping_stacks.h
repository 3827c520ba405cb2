// User stacks of threads that are off the CPUs when a recording begins, for recorders of waits: a BPF program
// walks the stack of the running thread alone, so these are unwound here, from copies, without stopping any.
#pragma once

#include <functional>
#include <span>

#include "bpf/user_object.h"
#include "format/base/result.h"
#include "record/events/target.h"

namespace tacho::record {

// Gives the loaded objects that ask for them (programs/recorders/before.h) the user stacks of the target's
// threads that are off the CPUs now. `stop`: a signal came. An error says what is missing then.
Result<> give_sleeping_stacks(std::span<const bpf::UserObject> objects, const Target& target,
                              const TargetTasks& tasks, const std::function<bool()>& stop);

}  // namespace tacho::record
