// Lost events by the cgroups that BPF programs counted them for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bpf/loaded_object.h"
#include "record/kernel/kernel_events.h"
#include "record/opened_recording.h"

namespace tacho::record {

// Lost events as BPF programs counted them: by CPU and cgroup, with the time (tacho/emit.h).
struct AttributedLoss {
  int cpu = -1;
  std::uint64_t cgroup = 0;           // id; 0: unknown
  std::uint64_t lost = 0;             // events since the programs were loaded
  std::uint64_t first = 0, last = 0;  // CLOCK_MONOTONIC, ns
};

// Losses that the programs of `object` counted for its map `map`. None if they do not use tacho/emit.h, or an
// old one.
void read_attributed_losses(const bpf::LoadedObject& object, const std::string& map,
                            const std::function<void(const AttributedLoss&)>& sink);

// The kernel's loss counts by event and CPU, attributed to cgroups as far as programs counted them. The sums
// are the kernel's.
std::vector<Losses> attributed_by_programs(const KernelEvents& events, const OpenedRecording& recording);

// For one event: reduces the kernel's counts `unnamed` by the result.
std::vector<Losses> take_attributed(Losses& unnamed, const std::vector<AttributedLoss>& named);

}  // namespace tacho::record
