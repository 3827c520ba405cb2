// Whose events the programs of BPF objects saw find no room: by CPU and cgroup, with the time (tacho/emit.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bpf/user_object.h"
#include "record/kernel/kernel_events.h"
#include "record/kernel/losses.h"
#include "record/prepared.h"

namespace tacho::record {

struct NamedLoss {
  int cpu = -1;
  std::uint64_t cgroup = 0;           // the kernel's number; 0: not known
  std::uint64_t lost = 0;             // events since the programs were loaded
  std::uint64_t first = 0, last = 0;  // CLOCK_MONOTONIC, ns
};

// Those that the programs of `object` noted beside its map `map`; none where they were made with an older
// tacho/emit.h or do not use it.
void read_named_losses(const bpf::UserObject& object, const std::string& map,
                       const std::function<void(const NamedLoss&)>& sink);

// What the kernel counted of its own rings, an event and a CPU each, told by cgroup as far as the programs
// that wrote into them know it. The sum stays what the kernel counted.
std::vector<Losses> named_by_programs(const KernelEvents& events, const Prepared& prepared);

// Of one event: `unnamed` is the kernel's, and gets smaller by what stands in the result.
std::vector<Losses> take_named(Losses& unnamed, const std::vector<NamedLoss>& named);

}  // namespace tacho::record
