#include "record/loss_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "format/loss_text.h"
#include "format/perf_abi.h"
#include "record/capture_end.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

std::uint64_t recursion_misses(const Prepared& prepared) {
  std::uint64_t misses = 0;
  for (const bpf::UserObject& object : prepared.objects) misses += object.recursion_misses();
  return misses;
}

// Calls that were nested deeper than the kernel watches: no ring was too small for them.
std::uint64_t report_too_deep(const Prepared& prepared, const Messages& messages) {
  constexpr std::size_t kMostNamed = 5;
  std::uint64_t all = 0;
  for (const bpf::UserObject& object : prepared.objects) {
    const std::uint64_t lost = object.too_deep();
    if (lost == 0) continue;
    all += lost;
    const auto functions = object.too_deep_by_function();
    std::string named;
    for (std::size_t i = 0; i < std::min(functions.size(), kMostNamed); ++i)
      named += fmt::format("{}{} {}", i == 0 ? ": " : ", ", functions[i].first, functions[i].second);
    if (functions.size() > kMostNamed)
      named += fmt::format(" and {} other functions", functions.size() - kMostNamed);
    messages.warn(fmt::format(
        "warning: {}: {} calls are lost, as they were nested deeper than the 64 calls of a thread whose "
        "returns the kernel watches; the calls around them are there{}",
        object.path(), lost, named));
  }
  return all;
}

}  // namespace

void report_losses(const RecordCounts& counts, std::uint64_t lost, const Prepared& prepared,
                   const KernelEvents& events, const RecordOptions& options, const Messages& messages) {
  const std::uint64_t samples = counts.samples;
  lost -= std::min(lost, report_too_deep(prepared, messages));
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
    const auto losses =
        described(all_losses(events, prepared), counts, prepared, events, options.target.cgroups);
    if (const std::string where = format::where_and_when_lost(losses); !where.empty())
      messages.warn("  lost: " + where);
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
