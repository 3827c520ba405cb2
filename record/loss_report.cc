#include "record/loss_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "format/perf_abi.h"
#include "record/loss_text.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

std::uint64_t recursion_misses(const Prepared& prepared) {
  std::uint64_t misses = 0;
  for (const bpf::UserObject& object : prepared.objects) misses += object.recursion_misses();
  return misses;
}

// Where each event stands by its name, and by its cgroup when it has one.
std::vector<LossAt> described(const std::vector<Losses>& losses, const Prepared& prepared,
                              const KernelEvents& events, const RecordOptions& options) {
  std::vector<LossAt> found;
  for (const Losses& loss : losses) {
    const PlannedEvent& event = prepared.plan.events[loss.event];
    const auto open = std::ranges::find(events.open_events(), loss.id, &OpenEvent::id);
    LossAt at{event.name, open == events.open_events().end() ? -1 : open->cpu, loss.lost};
    for (std::size_t i = 0; i < prepared.cgroups.size(); ++i) {
      if (event.cgroup >= 0 && prepared.cgroups[i].get() == event.cgroup)
        at.event += " in " + options.target.cgroups[i];
    }
    found.push_back(std::move(at));
  }
  return found;
}

}  // namespace

void report_losses(const RecordCounts& counts, std::uint64_t lost, const Prepared& prepared,
                   const KernelEvents& events, const RecordOptions& options, const Messages& messages) {
  const std::uint64_t samples = counts.samples;
  if (lost != 0) {
    const std::uint64_t all = samples + lost;
    const bool are_paused = prepared.plan.events.front().attr.has(abi::kWriteBackward);
    messages.warn(fmt::format(
        "warning: {} of {} events were lost ({:.1f} %): {}", lost, all,
        100.0 * static_cast<double>(lost) / static_cast<double>(all),
        are_paused
            ? "they came while the rings were read for a capture"
            : fmt::format("the rings were full; give them more room with -m {} (pages of each CPU), or "
                          "record less",
                          4 * prepared.plan.ring_pages)));
    const std::string where = where_lost(described(events.losses(), prepared, events, options));
    const std::string when = when_lost(counts);
    if (!where.empty() || !when.empty())
      messages.warn("  lost: " + where + (where.empty() || when.empty() ? "" : ", ") + when);
  }
  if (const std::uint64_t sideband = events.sideband_losses(); sideband != 0) {
    messages.warn(fmt::format(
        "warning: {} records of new processes and mappings were lost: some frames will have no names",
        sideband));
  }
  const std::uint64_t misses = recursion_misses(prepared);
  if (misses != 0) {
    messages.warn(fmt::format(
        "warning: the kernel skipped {} runs of BPF programs, which were running already on that CPU",
        misses));
  } else if (!prepared.objects.empty()) {
    messages.detail("no run of a BPF program was skipped");
  }
}

}  // namespace tacho::record
