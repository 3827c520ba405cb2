#include "record/cgroup_plan.h"

#include <algorithm>
#include <string>

namespace tacho::record {

Result<> assign_cgroups(Plan& plan, std::span<const format::Fd> cgroups) {
  if (cgroups.empty()) return Done{};
  const auto events = static_cast<std::size_t>(
      std::ranges::count(plan.events, false, [](const PlannedEvent& event) { return event.is_sideband; }));
  if (cgroups.size() != 1 && cgroups.size() != events) {
    return use_error("-G: " + std::to_string(cgroups.size()) + " cgroups for " + std::to_string(events) +
                     (events == 1 ? " event" : " events") +
                     "; name one for all of them, or one for each (an empty one takes everybody)");
  }
  std::size_t next = 0;
  for (PlannedEvent& event : plan.events) {
    if (event.is_sideband) continue;
    event.cgroup = cgroups[cgroups.size() == 1 ? 0 : next].get();
    ++next;
  }
  return Done{};
}

}  // namespace tacho::record
