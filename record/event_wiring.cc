#include "record/event_wiring.h"

#include <string>
#include <utility>

#include "record/conditions.h"

namespace tacho::record {

Result<> connect_objects(Prepared& prepared, std::span<const OpenEvent> events) {
  for (const OpenEvent& event : events) {
    for (const Connection& connection : prepared.plan.connections) {
      if (connection.event != event.event || connection.kind != bpf::ChannelKind::PerfEventArray) continue;
      auto& object = prepared.objects[connection.object];
      if (auto done = object.connect(connection.map, event.cpu, event.fd.get()); !done) return done;
    }
    for (const SampleProgram& program : prepared.plan.sample_programs) {
      if (program.event != event.event) continue;
      auto& object = prepared.objects[program.object];
      auto link = object.attach_to_perf_event(program.program, event.fd.get());
      if (!link) return std::move(link.error());
      // In the place of the link to the event that was there before the CPU went, and would be kept by it.
      prepared.program_links[{event.event, event.cpu, event.task}] = std::move(*link);
    }
  }
  return Done{};
}

namespace {

Result<> join_again(int cpu, std::span<const OpenEvent> open, Prepared& prepared, KernelEvents& events) {
  if (auto done = connect_objects(prepared, open); !done) return done;
  if (auto done = prepared.argument_probes.put_outputs(prepared.plan, open); !done) return done;
  if (auto done = attach_conditions(prepared.plan, open, prepared.conditions); !done) return done;
  if (prepared.stacks) {
    auto done = prepared.stacks->open_again(cpu, open, prepared.plan, events, prepared.host);
    if (!done) return done;
  }
  return events.enable_again(open);
}

}  // namespace

Result<KernelEvents::Reopened> open_again(int cpu, Prepared& prepared, KernelEvents& events) {
  auto opened = events.open_again(cpu, prepared.host);
  if (!opened) return opened;
  if (auto done = join_again(cpu, opened->events, prepared, events); !done) {
    events.close_again(cpu);
    return std::move(done.error());
  }
  return opened;
}

}  // namespace tacho::record
