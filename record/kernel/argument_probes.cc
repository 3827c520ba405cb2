#include "record/kernel/argument_probes.h"

#include <string>
#include <utility>

#include "bpf/attach/raw_program.h"
#include "format/records/perf_abi.h"
#include "record/kernel/perf_event.h"

namespace tacho::record {
namespace {

// Makes the descriptors of an event, on each CPU, the outputs of a probe's program.
Result<> put_outputs_of(const bpf::ProbeProgram& program, std::size_t event,
                        std::span<const OpenEvent> opened) {
  for (const OpenEvent& each : opened)
    if (each.event == event)
      if (auto done = program.put_output(each.cpu, each.fd.get()); !done) return done;
  return Done{};
}

}  // namespace

Result<ArgumentProbes> ArgumentProbes::open(const Plan& plan, const KernelEvents& events, const Host& host,
                                            std::optional<int> followed, bpf::StackWalker* walker) {
  ArgumentProbes all;
  for (const ArgumentProbe& planned : plan.argument_probes) {
    const std::string& name = planned.probe.name;
    const bool is_unwound = walker != nullptr && plan.events[planned.event].unwound_frames != 0;
    const auto number = static_cast<std::uint32_t>(all.probes_.size());
    const auto walk = is_unwound ? std::optional(walker->program(bpf::StackHook::Reader)) : std::nullopt;
    const bool is_tracepoint = planned.probe.attr.type == format::abi::kTracepoint;
    auto program = bpf::ProbeProgram::load(
        {.hook = is_tracepoint ? bpf::ProbeTask::Hook::Tracepoint : bpf::ProbeTask::Hook::Probe,
         .arguments = planned.arguments,
         .condition = planned.probe.condition,
         .followed = followed,
         .walk = walk,
         .sum = planned.sum});
    if (!program) return std::move(program.error()).in(name);
    if (auto done = put_outputs_of(*program, planned.event, events.open_events()); !done)
      return std::move(done.error()).in(name);
    if (is_unwound)
      if (auto done = walker->set_reader(number, program->reader()); !done)
        return std::move(done.error()).in(name);
    // A hit runs the programs of all events at that address, of any CPU, so one event is enough.
    const int cpu = plan.cpus.front();
    auto probe = open_event(planned.probe, -1, cpu);
    if (!probe) return explain_refusal(planned.probe, cpu, probe.error().code, host);
    all.probes_.push_back({planned.event, std::move(*probe), std::move(*program), {}});
    One& one = all.probes_.back();
    const auto in_event = [&name](Error error) { return std::move(error).in("event '" + name + "'"); };
    if (!is_unwound) {
      if (auto done = one.program.attach(one.probe.get()); !done) return in_event(std::move(done.error()));
      continue;
    }
    // Sets the program that the unwinder tail-calls at the end.
    auto link = bpf::link_to_event(one.program.fd(), one.probe.get(), number);
    if (!link) return in_event(std::move(link.error()));
    one.link = std::move(*link);
  }
  return all;
}

Result<> ArgumentProbes::put_outputs(const Plan& plan, std::span<const OpenEvent> events) const {
  for (const One& one : probes_)
    if (auto done = put_outputs_of(one.program, one.event, events); !done)
      return std::move(done.error()).in(plan.events[one.event].name);
  return Done{};
}

}  // namespace tacho::record
