#include "record/output/capture_head.h"

#include <linux/bpf.h>

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <iterator>
#include <utility>

#include "format/cursor.h"
#include "format/perf_abi.h"
#include "record/host/attachments.h"
#include "record/output/ring_layout.h"

namespace tacho::record {
namespace {

// The schemas of the connected channels, under the names that their events have in this capture.
std::vector<format::PayloadSchema> schemas_of(const Plan& plan, std::span<const bpf::UserObject> objects) {
  std::vector<format::PayloadSchema> schemas;
  for (const Connection& connection : plan.connections) {
    const auto& channels = objects[connection.object].channels();
    const auto channel = std::ranges::find(channels, connection.map, &bpf::Channel::map);
    if (channel == channels.end() || !channel->schema) continue;
    format::PayloadSchema schema = *channel->schema;
    if (connection.kind != bpf::ChannelKind::PerfEventArray && !bpf::is_summary(connection.kind))
      schema = RingLayout::schema_of_rest(std::move(schema));
    schema.event = plan.events[connection.event].name;
    const auto same = [&](const format::PayloadSchema& other) { return other.event == schema.event; };
    if (std::ranges::none_of(schemas, same)) schemas.push_back(std::move(schema));
  }
  for (const ArgumentProbe& probe : plan.argument_probes) {
    const std::string& name = plan.events[probe.event].name;
    if (std::ranges::find(schemas, name, &format::PayloadSchema::event) == schemas.end())
      schemas.push_back(probe.sum ? bpf::layout_of(name, probe.arguments, *probe.sum).schema()
                                  : bpf::schema_of(name, probe.arguments));
  }
  return schemas;
}

// The kernel's number of a loaded program's BTF, out of its bpf_prog_info; 0 when it does not say.
std::uint32_t btf_id_of(const bpf::LoadedProgram& program) {
  format::Cursor info(program.info.info);
  info.skip(offsetof(bpf_prog_info, btf_id));
  return info.u32();
}

void add_objects(std::span<const bpf::UserObject> objects, const std::vector<bpf::LoadedProgram>& loaded,
                 format::Environment& environment) {
  for (const bpf::UserObject& object : objects) {
    std::uint32_t btf_id = 0;
    for (const format::AttachedProgram& program : object.programs()) {
      const auto same = std::ranges::find(loaded, program.id, &bpf::LoadedProgram::id);
      if (btf_id == 0 && program.id != 0 && same != loaded.end()) btf_id = btf_id_of(*same);
    }
    if (auto btf = object.btf(); !btf.empty()) environment.btf.push_back({btf_id, std::move(btf)});
  }
}

// Names of kernel functions and BPF programs matter only when some event looks there.
bool looks_into_kernel(const Plan& plan) {
  return std::ranges::any_of(plan.events, [](const PlannedEvent& event) {
    return !event.is_sideband && !event.attr.has(format::abi::kExcludeKernel);
  });
}

// Which events stand together: readers show their counts side by side.
std::vector<format::EventGroup> groups_of(const Plan& plan) {
  std::vector<format::EventGroup> groups;
  for (std::size_t event = 0; event < plan.events.size(); ++event) {
    const auto leader = plan.events[event].leader;
    if (!leader) continue;
    if (*leader == event) {
      const std::string& name = plan.events[event].group_name;
      groups.push_back({name.empty() ? "{anon_group}" : name, static_cast<std::uint32_t>(event), 0});
    }
    ++groups.back().members;
  }
  std::erase_if(groups, [](const format::EventGroup& group) { return group.members < 2; });
  return groups;
}

// The clock that times are taken from, when it is not the kernel's perf clock: how fine it is, and what the
// time of the day is by it.
void describe_clock(const format::EventAttr& attr, format::Environment& environment) {
  timespec resolution{}, wall{}, now{};
  if (!attr.has(format::abi::kUseClockid) || clock_getres(attr.clockid, &resolution) != 0) return;
  const auto nanoseconds = [](const timespec& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
  };
  environment.clock_resolution_ns = nanoseconds(resolution);
  if (clock_gettime(CLOCK_REALTIME, &wall) != 0 || clock_gettime(attr.clockid, &now) != 0) return;
  environment.clock_data = {static_cast<std::uint32_t>(attr.clockid), nanoseconds(wall), nanoseconds(now)};
}

}  // namespace

Result<CaptureHead> describe_capture(const Plan& plan, KernelSymbols kernel,
                                     std::span<const bpf::UserObject> objects, format::TracingData tracing,
                                     const std::vector<std::string>& command_line) {
  CaptureHead head;
  format::Features& features = head.features;
  features.environment = describe_host(command_line);
  features.environment.groups = groups_of(plan);
  describe_clock(plan.events.front().attr, features.environment);
  features.environment.has_branch_stack = std::ranges::any_of(
      plan.events, [](const auto& event) { return event.attr.samples(format::abi::kSampleBranchStack); });
  features.tracing = std::move(tracing);
  features.schemas = schemas_of(plan, objects);

  head.kernel_text = std::move(kernel.text);
  head.images = std::move(kernel.images);
  if (!kernel.lack.empty()) head.notes.push_back(std::move(kernel.lack));
  auto attached = gather_attachments(std::move(kernel.list));
  if (!attached) return std::move(attached.error());
  features.attachments = std::move(*attached);

  head.modules = loaded_modules();
  features.environment.build_ids = kernel_build_ids(head.modules);
  if (!looks_into_kernel(plan)) head.notes.clear();
  return head;
}

void add_programs(const Plan& plan, std::span<const bpf::UserObject> objects,
                  std::vector<format::AttachedProgram> attached, CaptureHead& head) {
  if (auto programs = bpf::loaded_programs()) {
    head.programs = std::move(*programs);
  } else if (looks_into_kernel(plan)) {
    head.notes.push_back("BPF programs that run already will have no names: " + programs.error().what);
  }
  format::Environment& environment = head.features.environment;
  for (const bpf::LoadedProgram& program : head.programs) environment.bpf_programs.push_back(program.info);
  environment.attached_programs = std::move(attached);
  add_objects(objects, head.programs, environment);
}

}  // namespace tacho::record
