// User stacks of threads that sleep when a recording begins.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "bpf/attach/pid_numbers.h"
#include "bpf/loaded_object.h"
#include "format/base/result.h"
#include "record/events/target.h"
#include "record/host/foreign_reader.h"

namespace tacho::record {

// Puts the user stacks of the target's sleeping threads into the maps of objects that have such a map
// (programs/recorders/before.h), for waits that began before the recording. A BPF program can only walk the
// stack of the running thread, so these are unwound here, from copies, without stopping the threads. `stop`:
// a signal came. `numbers`: for the kernel's tids, by which the maps have them. The error says what is
// missing.
Result<> give_sleeping_stacks(std::span<const bpf::LoadedObject> objects,
                              const std::optional<bpf::PidNumbers>& numbers, const Target& target,
                              const TargetTasks& tasks, const std::shared_ptr<ForeignReader>& reader,
                              const std::function<bool()>& stop);

}  // namespace tacho::record
