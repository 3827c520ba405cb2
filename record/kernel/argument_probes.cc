#include "record/kernel/argument_probes.h"

#include <utility>

#include "record/kernel/perf_event.h"

namespace tacho::record {

Result<ArgumentProbes> ArgumentProbes::open(const Plan& plan, const KernelEvents& events, const Host& host,
                                            std::optional<int> followed) {
  ArgumentProbes all;
  for (const ArgumentProbe& planned : plan.argument_probes) {
    auto program = bpf::ProbeProgram::load(planned.arguments, followed);
    if (!program) return std::move(program.error()).in(planned.probe.name);
    for (const OpenEvent& event : events.open_events()) {
      if (event.event != planned.event) continue;
      if (auto done = program->put_output(event.cpu, event.fd.get()); !done)
        return std::move(done.error()).in(planned.probe.name);
    }
    // A hit runs the programs of all probes that stand there, whatever their CPU: one is enough.
    const int cpu = plan.cpus.front();
    auto probe = open_event(planned.probe, -1, cpu);
    if (!probe) return explain_refusal(planned.probe, cpu, probe.error().code, host);
    One one{planned.event, std::move(*probe), std::move(*program), {}};
    Result<> attached = Done{};
    if (planned.probe.condition.empty()) {
      attached = one.program.attach(one.probe.get());
    } else {
      auto filter =
          bpf::EventFilter::load(planned.probe.condition, bpf::EventFilter::Hook::Probe, one.program.fd());
      if (!filter) return std::move(filter.error()).in("--filter: event '" + planned.probe.name + "'");
      one.condition.push_back(std::move(*filter));
      attached = one.condition.front().attach(one.probe.get());
    }
    if (!attached) return std::move(attached.error()).in(planned.probe.name);
    all.probes_.push_back(std::move(one));
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
