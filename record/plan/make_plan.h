// Makes the plan of a recording from its options, events and BPF objects.
#pragma once

#include <optional>
#include <span>

#include "format/base/file.h"
#include "format/base/result.h"
#include "format/records/event_attr.h"
#include "record/events/event_request.h"
#include "record/host/host.h"
#include "record/options/options.h"
#include "record/options/sampling_options.h"
#include "record/plan/plan.h"

namespace tacho::record {

// The properties of the target that decide how an event is opened.
struct Following {
  bool children = true;  // follow children of the watched threads, unless an event decides otherwise
  bool inherits = true;  // the default of events that do not decide
  bool at_exec = false;  // events are enabled by the exec of the command
};

// perf_event_attr of the sideband event, which carries mappings, names and ends of processes.
format::EventAttr sideband_attr(const SamplingOptions& options, Following following);

// The target, as far as it exists.
struct PlanTarget {
  std::span<const int> threads;     // if it names processes or threads
  std::optional<int> command = {};  // the process of the COMMAND
  // The folders in the order of the option; an empty Fd is for all cgroups. The Fds must outlive the plan.
  std::span<const format::Fd> cgroups = {};
};

// Decides everything that does not depend on the kernel's answers (plan/adaptation.h). `requests`: with
// tracepoints resolved; the n-th request of kind BpfObject is `objects[n]`.
Result<Plan> make_plan(const RecordOptions& options, std::span<const EventRequest> requests,
                       std::span<const ObjectFacts> objects, const PlanTarget& target, const Host& host);

// The plan with its events limited to cgroups (-G). As in perf, one applies to all events, several to one
// event each, in order. The sideband stays system-wide: a process may enter the cgroup long after it mapped
// its files.
Result<Plan> in_cgroups(Plan plan, std::span<const format::Fd> cgroups);

// The plan with all events once for each cgroup, in the order of the cgroups (--for-each-cgroup,
// --container). An event of a BPF object, with one descriptor for each CPU in its map, cannot be opened
// twice.
Result<Plan> repeated_in_cgroups(Plan plan, std::span<const format::Fd> cgroups);

}  // namespace tacho::record
