// Which event takes only what runs in which cgroup (-G, --for-each-cgroup).
#pragma once

#include <span>

#include "format/file.h"
#include "format/result.h"
#include "record/plan.h"

namespace tacho::record {

// `cgroups`: the folders in the order they were named, an empty Fd for "everybody". One goes for all events,
// several are one for each event in the order of the events, as perf has it. The sideband stays that of the
// whole system: a process may come into the cgroup long after it mapped its files.
Result<> assign_cgroups(Plan& plan, std::span<const format::Fd> cgroups);

// All events once for each cgroup, in the order of the cgroups (--for-each-cgroup, --container). An event of
// a BPF object, which has one descriptor for each CPU in its map, cannot be there twice.
Result<> repeat_in_cgroups(Plan& plan, std::span<const format::Fd> cgroups);

}  // namespace tacho::record
