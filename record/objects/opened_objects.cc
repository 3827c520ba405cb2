#include "record/objects/opened_objects.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bpf/programs/recorders/shared_constants.h"
#include "bpf/support/shipped_files.h"
#include "bpf/user_object.h"
#include "cli/expression.h"
#include "cli/nearest.h"
#include "format/base/file.h"
#include "record/events/event_names.h"
#include "record/events/recorders.h"
#include "record/events/target.h"
#include "record/host/attachments.h"
#include "record/objects/conditions.h"
#include "record/objects/followed_functions.h"
#include "record/parse_text.h"

namespace tacho::record {

namespace {

constexpr std::string_view kDisks = "tacho_disks", kDisk = "disk";
// Options of all recorders (bpf/programs/recorders/recorder.h): `cgroup`, a path, and the numbers that
// programs compare.
constexpr std::string_view kCgroup = "cgroup", kCgroupNumber = "cgroup_number", kCgroupLevel = "cgroup_level";

Error error_in_setting(const EventRequest& request, std::size_t at, const std::string& name,
                       const std::string& what) {
  return error_at(request.text, at, name + ": " + what);
}

Result<> set_cgroup(bpf::UserObject& object, const EventRequest& request, const ConstantSetting& setting) {
  if (!setting.value || setting.value->empty())
    return error_in_setting(request, setting.name_at, setting.name,
                            "the path is missing: cgroup='/system.slice/nginx.service'");
  const auto number = number_of_cgroup(*setting.value);
  if (!number) return error_in_setting(request, setting.value_at, setting.name, number.error().what);
  auto fault = object.set_constant(kCgroupNumber, std::to_string(number->id));
  if (!fault) fault = object.set_constant(kCgroupLevel, std::to_string(number->level));
  return fault ? error_in_setting(request, setting.name_at, setting.name, fault->what) : Result<>(Done{});
}

// Fills the table of disks of a program. It has no partitions: requests are recorded for the whole disk.
std::vector<tacho_disk> table_of(const std::vector<BlockDevice>& devices) {
  std::vector<tacho_disk> disks;
  for (const BlockDevice& each : devices) {
    if (disks.size() == TACHO_MOST_DISKS) break;
    if (!each.disk.empty() || each.name.size() >= TACHO_DISK_NAME) continue;
    tacho_disk& disk = disks.emplace_back();
    disk = {};
    disk.dev = each.dev;
    std::ranges::copy(each.name, disk.name);
  }
  disks.resize(TACHO_MOST_DISKS);
  return disks;
}

// For programs with a table of disks (bpf/programs/recorders/shared_constants.h): fills it, and resolves the
// option `disk`.
Result<> set_disks(bpf::UserObject& object, const EventRequest& request) {
  if (object.constant(kDisks).empty()) return Done{};
  std::vector<BlockDevice> devices = block_devices(text_of_file("/proc/partitions"));
  if (const ConstantSetting* const wanted = request.setting(kDisk)) {
    const auto disk = disk_named(devices, wanted->value.value_or(""));
    if (!disk) return error_in_setting(request, wanted->value_at, wanted->name, disk.error().what);
    if (const auto fault = object.set_constant("dev", std::to_string(disk->dev)))
      return error_in_setting(request, wanted->name_at, wanted->name, fault->what);
    devices = {*disk};
  }
  const auto table = table_of(devices);
  object.set_own(std::string(kDisks), std::as_bytes(std::span(table)));
  return Done{};
}

// Options of recorders that are a pid or tid, which they compare with the kernel's.
constexpr std::string_view kNumbersOfThreads[] = {"pid", "tid", "ppid", "target"};

// Replaces the value of such an option by the kernel's number.
Result<> set_kernel_tid(bpf::UserObject& object, const EventRequest& request, const ConstantSetting& setting,
                        const bpf::PidNumbers& numbers) {
  std::uint32_t own = 0;
  const std::vector<std::byte> value = object.constant(setting.name);
  if (value.size() == sizeof own) std::memcpy(&own, value.data(), sizeof own);
  if (own == 0) return Done{};  // any
  const std::uint32_t kernel_tid = numbers.kernel_tid(own);
  if (kernel_tid == 0)
    return error_in_setting(request, setting.value_at, setting.name,
                            fmt::format("there is no process or thread {} in this pid namespace", own));
  object.set_own(setting.name, std::as_bytes(std::span(&kernel_tid, 1)));
  return Done{};
}

struct NamedUnit {
  std::string_view end;  // suffix of an option's name
  cli::NumberUnit unit;
  std::uint64_t size;
};
constexpr NamedUnit kNamedUnits[] = {{"_ns", cli::NumberUnit::Time, 1},
                                     {"_us", cli::NumberUnit::Time, 1'000},
                                     {"_ms", cli::NumberUnit::Time, 1'000'000},
                                     {"_bytes", cli::NumberUnit::Size, 1}};

// For "min_us=10ms": a hint with the right number. Empty: the value is not a number with a unit.
std::string value_without_unit(const ConstantSetting& setting) {
  const auto row = std::ranges::find_if(
      kNamedUnits, [&](const NamedUnit& each) { return std::string_view(setting.name).ends_with(each.end); });
  if (row == std::end(kNamedUnits) || !setting.value) return {};
  const auto parsed = cli::parse_expression(setting.name, *setting.value);
  if (!parsed || parsed->nodes.size() != 1 || parsed->root().operation != cli::Operation::Whole ||
      parsed->root().unit != row->unit || parsed->root().whole % row->size != 0)
    return {};
  return fmt::format("; its unit is in its name: {}={}", setting.name, parsed->root().whole / row->size);
}

}  // namespace

Result<> set_constants(bpf::UserObject& object, const EventRequest& request,
                       const std::optional<bpf::PidNumbers>& numbers) {
  for (const ConstantSetting& setting : request.constants()) {
    const auto fault = object.set_constant(setting.name, setting.value);
    if (fault) {
      const bool is_in_name = fault->part == bpf::ConstantFault::Part::Name;
      std::string hint =
          cli::suggestion(is_in_name ? setting.name : setting.value.value_or(""), fault->known);
      if (!is_in_name && hint.empty()) hint = value_without_unit(setting);
      return error_in_setting(request, (is_in_name ? setting.name_at : setting.value_at) + fault->at,
                              setting.name, fault->what + hint);
    }
    const bool is_number = std::ranges::find(kNumbersOfThreads, setting.name) != std::end(kNumbersOfThreads);
    if (numbers && !request.recorder.empty() && is_number)
      if (auto done = set_kernel_tid(object, request, setting, *numbers); !done) return done;
    if (request.recorder.empty() || setting.name != kCgroup) continue;
    if (auto done = set_cgroup(object, request, setting); !done) return done;
  }
  return request.recorder.empty() ? Result<>(Done{}) : set_disks(object, request);
}

Result<format::Bytes> object_of(const EventRequest& request) {
  const RecorderRow* const row = find_recorder(request.recorder);
  for (const bpf::ShippedRecorder& each : bpf::shipped_recorders())
    if (row != nullptr && each.name == row->object) return each.object;
  return Error{
      fmt::format("-e {}: this tacho has no recorders: it was built without clang, or for another machine "
                  "than x86-64 and arm64",
                  request.text)};
}

namespace {

Result<bpf::UserObject> open_object(const EventRequest& request, const bpf::ObjectOptions& options) {
  if (request.recorder.empty()) return bpf::UserObject::open(request.object()->path, options);
  const auto bytes = object_of(request);
  if (!bytes) return bytes.error();
  return bpf::UserObject::open_shipped(request.recorder, *bytes, options);
}

}  // namespace

Result<OpenedObjects> open_objects(const std::vector<EventRequest>& requests,
                                   const std::optional<bpf::PidNumbers>& numbers,
                                   const std::function<bool()>& stop, const Messages& messages) {
  OpenedObjects out;
  bpf::ObjectOptions options;
  options.stop = stop;
  options.log = [messages](std::string_view line) { messages.detail(line); };
  for (const EventRequest& written : requests) {
    if (written.object() == nullptr) continue;
    auto object = open_object(written, options);
    if (!object) return std::move(object.error());
    const bool follows = follows_objects(*object);
    const EventRequest& request = follows ? with_members_joined(written, *object) : written;
    if (auto done = set_constants(*object, request, numbers); !done) return std::move(done.error());
    if (!object->constant("tacho_preloads").empty()) {
      if (!out.environment.empty())
        return use_error("-e " + request.text +
                         ": a second one would record every call twice; give -e fastcalls once");
      auto variables = preloaded_calls(request, *object, stop, out.attachments, messages);
      if (!variables) return std::move(variables.error());
      out.environment = std::move(*variables);
    }
    if (object->wants_functions()) {
      auto functions = follows ? followed_objects(request, *object, messages)
                               : followed_functions(request, *object, messages);
      if (!functions) return std::move(functions.error());
      if (object->wanted_functions().empty()) {
        auto done = add_function_types(*object, *functions, stop, out.attachments, messages);
        if (!done) return std::move(done.error());
      }
      if (const std::size_t cheap = choose_cheap_places(*functions); cheap != 0)
        messages.detail(std::to_string(cheap) + " probes are placed after the endbr64 of their functions");
      object->set_functions(std::move(*functions));
    }
    out.objects.push_back(std::move(*object));
  }
  return out;
}

void set_own_pids(std::vector<bpf::UserObject>& objects, int command,
                  const std::optional<bpf::PidNumbers>& numbers) {
  for (const auto& [name, pid] : {std::pair("tacho_recorder", ::getpid()), {"tacho_command", command}}) {
    const std::uint32_t tid = pid == 0 ? 0 : bpf::kernel_tid_of(numbers, static_cast<std::uint32_t>(pid));
    for (bpf::UserObject& object : objects) object.set_own(name, std::as_bytes(std::span(&tid, 1)));
  }
}

Result<> connect_objects(OpenedRecording& recording, std::span<const OpenEvent> events) {
  for (const OpenEvent& event : events) {
    for (const Connection& connection : recording.plan.connections) {
      if (connection.event != event.event || connection.kind != bpf::ChannelKind::PerfEventArray) continue;
      auto& object = recording.objects[connection.object];
      if (auto done = object.connect_channel(connection.map, event.cpu, event.fd.get()); !done) return done;
    }
    for (const SampleProgram& program : recording.plan.sample_programs) {
      if (program.event != event.event) continue;
      auto& object = recording.objects[program.object];
      auto link = object.attach_to_perf_event(program.program, event.fd.get());
      if (!link) return std::move(link.error());
      // Replaces the link to the CPU's old event, which would keep that event open.
      recording.program_links[{event.event, event.cpu, event.task}] = std::move(*link);
    }
  }
  return Done{};
}

namespace {

Result<> join_cpu(int cpu, std::span<const OpenEvent> open, OpenedRecording& recording) {
  if (auto done = connect_objects(recording, open); !done) return done;
  if (auto done = recording.argument_probes.put_outputs(recording.plan, open); !done) return done;
  if (auto done = attach_conditions(recording.plan, open, recording.conditions); !done) return done;
  if (recording.stacks) {
    auto done = recording.stacks->reopen_cpu(cpu, open, recording.plan, recording.events, recording.host);
    if (!done) return done;
  }
  return recording.events.enable_cpu(open);
}

}  // namespace

Result<KernelEvents::Reopened> reopen_cpu(int cpu, OpenedRecording& recording) {
  auto opened = recording.events.reopen_cpu(cpu, recording.host);
  if (!opened) return opened;
  if (auto done = join_cpu(cpu, opened->events, recording); !done) {
    recording.events.close_cpu(cpu);
    return std::move(done.error());
  }
  return opened;
}

}  // namespace tacho::record
