#include "record/session/switch_events.h"

#include <cstddef>
#include <string>
#include <vector>

#include "format/extensions/tracing_data.h"
#include "record/host/probes.h"
#include "record/kernel/perf_event.h"
#include "record/output/record_walk.h"
#include "record/plan/requests.h"

namespace tacho::record {
namespace {

constexpr std::string_view kOption = "--switch-output-event";

// Notes about the recorded events do not apply to these.
RecordOptions without_details(const RecordOptions& options) {
  RecordOptions plain = options;
  plain.sampling = SamplingOptions{};
  plain.files.overwrite = false;
  plain.ring_bytes.reset();
  plain.ring_budget.reset();
  plain.ring_pages = 1;
  return plain;
}

}  // namespace

Result<Plan> plan_switch_events(const RecordOptions& options, std::span<const int> threads,
                                const Host& host) {
  for (const EventRequest& request : options.switch_events)
    if (request.object() != nullptr)
      return use_error(
          std::string(kOption) + ": '" + request.text +
          "' is a BPF program, which is recorded with -e; name an event of the kernel, or a probe");
  for (const EventRequest& request : options.switch_events)
    if (request.sum)
      return use_error(std::string(kOption) + ": '" + request.text +
                       "' counts, and has no samples meanwhile; name the probe or tracepoint itself");
  auto requests = find_probes(options.switch_events);
  if (!requests) return std::move(requests.error()).in(kOption);
  format::TracingData unused;  // the events are not decoded
  requests = resolve_tracepoints(*requests, unused);
  if (!requests) return std::move(requests.error()).in(kOption);
  if (may_exclude_kernel(options) && is_kept_out_of_kernel(host)) exclude_kernel(*requests);
  auto plan = make_plan(without_details(options), *requests, {}, threads, host);
  if (!plan) return std::move(plan.error()).in(kOption);
  if (plan->events.back().is_sideband) plan->events.pop_back();
  for (PlannedEvent& event : plan->events) event.attr.wakeup = 1;  // byte: every record wakes
  return plan;
}

Result<SwitchEvents> SwitchEvents::open(Plan& plan, const Host& host, const std::function<bool()>& stop) {
  auto events = KernelEvents::open(plan, host, stop);
  if (!events) return std::move(events.error()).in(kOption);
  return SwitchEvents(std::move(*events));
}

std::vector<int> SwitchEvents::fds() const {
  std::vector<int> all;
  for (const OpenEvent& event : events_.open_events()) all.push_back(event.fd.get());
  return all;
}

std::uint64_t SwitchEvents::take() {
  std::uint64_t happened = 0;
  for (PerfRing& ring : events_.rings()) {
    std::vector<std::byte> records;  // a run that wraps comes in two pieces
    (void)ring.drain(
        [&records](format::Bytes run) { records.insert(records.end(), run.begin(), run.end()); });
    RecordCounts counts;
    if (count_records(records, counts)) happened += counts.samples + counts.lost;
  }
  return happened;
}

}  // namespace tacho::record
