#include "record/kernel/argument_probes.h"

#include <utility>

#include "bpf/event_link.h"
#include "record/kernel/perf_event.h"

namespace tacho::record {

// The condition is asked first. `number`: by which the program that walks stacks knows what comes after it.
Result<> ArgumentProbes::attach(One& one, const bpf::FilterSteps& condition,
                                std::optional<std::uint32_t> number) {
  if (!condition.empty()) {
    auto filter = bpf::EventFilter::load(condition, bpf::EventFilter::Hook::Probe, one.program.fd());
    if (!filter) return std::move(filter.error()).in("--filter");
    one.condition.push_back(std::move(*filter));
  }
  const int event = one.probe.get();
  if (!number) return condition.empty() ? one.program.attach(event) : one.condition.front().attach(event);
  const int first = condition.empty() ? one.program.fd() : one.condition.front().fd();
  auto link = bpf::link_to_event(first, event, *number);
  if (!link) return std::move(link.error());
  one.link = std::move(*link);
  return Done{};
}

Result<ArgumentProbes> ArgumentProbes::open(const Plan& plan, const KernelEvents& events, const Host& host,
                                            std::optional<int> followed, bpf::StackWalker* walker) {
  ArgumentProbes all;
  for (const ArgumentProbe& planned : plan.argument_probes) {
    const std::string& name = planned.probe.name;
    const bool is_unwound = walker != nullptr && plan.events[planned.event].unwound_frames != 0;
    const auto number =
        is_unwound ? std::optional(static_cast<std::uint32_t>(all.probes_.size())) : std::nullopt;
    const auto walk = is_unwound ? std::optional(walker->program(bpf::StackHook::Reader)) : std::nullopt;
    auto program = bpf::ProbeProgram::load(planned.arguments, followed, walk);
    if (!program) return std::move(program.error()).in(name);
    for (const OpenEvent& event : events.open_events()) {
      if (event.event != planned.event) continue;
      if (auto done = program->put_output(event.cpu, event.fd.get()); !done)
        return std::move(done.error()).in(name);
    }
    if (number) {
      if (auto done = walker->set_reader(*number, program->reader()); !done)
        return std::move(done.error()).in(name);
    }
    // A hit runs the programs of all probes that stand there, whatever their CPU: one is enough.
    const int cpu = plan.cpus.front();
    auto probe = open_event(planned.probe, -1, cpu);
    if (!probe) return explain_refusal(planned.probe, cpu, probe.error().code, host);
    all.probes_.push_back({planned.event, std::move(*probe), std::move(*program), {}, {}});
    if (auto done = attach(all.probes_.back(), planned.probe.condition, number); !done)
      return std::move(done.error()).in("event '" + name + "'");
  }
  return all;
}

Result<> ArgumentProbes::put_outputs(const Plan& plan, std::span<const OpenEvent> events) const {
  for (const One& one : probes_)
    for (const OpenEvent& event : events) {
      if (event.event != one.event) continue;
      if (auto done = one.program.put_output(event.cpu, event.fd.get()); !done)
        return std::move(done.error()).in(plan.events[one.event].name);
    }
  return Done{};
}

}  // namespace tacho::record
