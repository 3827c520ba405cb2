#include "record/session/capture_head.h"

#include <linux/bpf.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "format/base/cursor.h"
#include "format/records/perf_abi.h"
#include "record/host/attachments.h"
#include "record/host/host.h"
#include "record/kernel/perf_clock.h"
#include "record/objects/ring_layout.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

// The schemas of the connected channels, with the event names of this capture.
std::vector<format::PayloadSchema> schemas_of(const Plan& plan, std::span<const bpf::LoadedObject> objects) {
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
      schemas.push_back(probe.sum ? bpf::layout_of_probe(name, probe.arguments, *probe.sum).schema()
                                  : bpf::schema_of(name, probe.arguments));
  }
  return schemas;
}

// btf_id in a loaded program's bpf_prog_info; 0: it has none.
std::uint32_t btf_id_of(const bpf::LoadedProgram& program) {
  format::Cursor info(program.info.info);
  info.skip(offsetof(bpf_prog_info, btf_id));
  return info.u32();
}

void add_objects(std::span<const bpf::LoadedObject> objects, const std::vector<bpf::LoadedProgram>& loaded,
                 format::Environment& environment) {
  for (const bpf::LoadedObject& object : objects) {
    std::uint32_t btf_id = 0;
    for (const format::AttachedProgram& program : object.programs()) {
      const auto same = std::ranges::find(loaded, program.id, &bpf::LoadedProgram::id);
      if (btf_id == 0 && program.id != 0 && same != loaded.end()) btf_id = btf_id_of(*same);
    }
    if (auto btf = object.btf(); !btf.empty()) environment.btf.push_back({btf_id, std::move(btf)});
  }
}

// Whether an event samples kernel code: then symbols of the kernel and of BPF programs are needed.
bool samples_kernel(const Plan& plan) {
  return std::ranges::any_of(plan.events, [](const PlannedEvent& event) {
    return !event.is_sideband && !event.attr.has(abi::kExcludeKernel);
  });
}

// Feature GROUP_DESC: readers show the events of a group in columns.
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

// Feature CLOCK_DATA: the time of day by the clock of the events, now. Left out if the kernel refuses an
// event for it.
void describe_clock(const format::EventAttr& attr, format::Environment& environment) {
  if (!attr.has(abi::kUseClockid)) {
    if (const auto now = read_perf_clock(static_cast<std::size_t>(::sysconf(_SC_PAGESIZE))))
      environment.clock_data = {format::ClockData::kPerfClock, now->wall_ns, now->perf_ns};
    return;
  }
  timespec resolution{};
  if (clock_getres(attr.clockid, &resolution) != 0) return;
  environment.clock_resolution_ns = static_cast<std::uint64_t>(resolution.tv_sec) * 1'000'000'000 +
                                    static_cast<std::uint64_t>(resolution.tv_nsec);
  environment.clock_data = {static_cast<std::uint32_t>(attr.clockid), clock_now(CLOCK_REALTIME),
                            clock_now(attr.clockid)};
}

}  // namespace

Result<CaptureHead> describe_capture(const Plan& plan, KernelSymbols kernel,
                                     std::span<const bpf::LoadedObject> objects, format::TracingData tracing,
                                     const std::vector<std::string>& command_line) {
  CaptureHead head;
  format::Features& features = head.features;
  features.environment = describe_host(command_line);
  features.environment.groups = groups_of(plan);
  describe_clock(plan.events.front().attr, features.environment);
  features.environment.has_branch_stack = std::ranges::any_of(
      plan.events, [](const auto& event) { return event.attr.samples(abi::kSampleBranchStack); });
  features.tracing = std::move(tracing);
  features.schemas = schemas_of(plan, objects);

  head.kernel_text = std::move(kernel.text);
  head.images = std::move(kernel.images);
  if (!kernel.missing_reason.empty()) head.notes.push_back(std::move(kernel.missing_reason));
  auto attached = gather_attachments(std::move(kernel.list));
  if (!attached) return std::move(attached.error());
  features.attachments = std::move(*attached);

  head.modules = loaded_modules();
  features.environment.build_ids = kernel_build_ids(head.modules);
  if (!samples_kernel(plan)) head.notes.clear();
  return head;
}

void add_loaded_programs(std::span<const bpf::LoadedProgram> programs, format::Environment& environment) {
  std::size_t room = std::size_t{4} << 20;  // of BTF
  for (const bpf::LoadedProgram& program : programs) {
    environment.bpf_programs.push_back(program.info);
    const bool is_known =
        std::ranges::find(environment.btf, program.btf.id, &format::BtfBlob::id) != environment.btf.end();
    if (program.btf.id == 0 || is_known || program.btf.bytes.size() > room) continue;
    room -= program.btf.bytes.size();
    environment.btf.push_back(program.btf);
  }
  environment.bpf_maps = bpf::maps_of(programs);
}

void add_programs(const Plan& plan, std::span<const bpf::LoadedObject> objects,
                  std::vector<format::AttachedProgram> attached, CaptureHead& head) {
  if (auto programs = bpf::loaded_programs()) {
    head.programs = std::move(*programs);
  } else if (samples_kernel(plan)) {
    head.notes.push_back("BPF programs loaded before will have no names: " + programs.error().what);
  }
  format::Environment& environment = head.features.environment;
  environment.attached_programs = std::move(attached);
  add_objects(objects, head.programs, environment);
  add_loaded_programs(head.programs, environment);
  for (auto& [id, attachment] : bpf::attachments_by_links())
    environment.bpf_places.emplace_back(std::to_string(id), std::move(attachment));
}

}  // namespace tacho::record
