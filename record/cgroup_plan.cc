#include "record/cgroup_plan.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

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

Result<> repeat_in_cgroups(Plan& plan, std::span<const format::Fd> cgroups) {
  if (cgroups.size() > 1 && !(plan.connections.empty() && plan.sample_programs.empty())) {
    return use_error(
        "BPF objects are loaded once, so their events can be those of one cgroup; name one of the " +
        std::to_string(cgroups.size()) + ", or the cgroup that holds them all (-G)");
  }
  const auto sideband =
      std::ranges::find_if(plan.events, [](const PlannedEvent& event) { return event.is_sideband; });
  const std::vector<PlannedEvent> once(plan.events.begin(), sideband);
  std::vector<PlannedEvent> all;
  for (const format::Fd& cgroup : cgroups) {
    const std::size_t begin = all.size();
    for (PlannedEvent event : once) {
      event.cgroup = cgroup.get();
      if (event.leader) *event.leader += begin;
      all.push_back(std::move(event));
    }
  }
  all.insert(all.end(), sideband, plan.events.end());
  plan.events = std::move(all);
  return Done{};
}

}  // namespace tacho::record
