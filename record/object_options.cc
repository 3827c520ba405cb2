#include "record/object_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bpf/programs/recorders/disks.h"
#include "cli/expression.h"
#include "cli/nearest.h"
#include "format/file.h"
#include "record/events/cgroup.h"
#include "record/host/disks.h"

namespace tacho::record {
namespace {

// Options of all recorders (bpf/programs/recorders/recorder.h): the first is for people, the others are what
// programs compare with.
constexpr std::string_view kDisks = "tacho_disks", kDisk = "disk";
constexpr std::string_view kCgroup = "cgroup", kCgroupNumber = "cgroup_number", kCgroupLevel = "cgroup_level";

Error at_letter(const EventRequest& request, std::size_t at, const std::string& name,
                const std::string& what) {
  return use_error(fmt::format("-e {}: letter {}: {}: {}", request.text, at + 1, name, what));
}

Result<> set_cgroup(bpf::UserObject& object, const EventRequest& request, const ConstantSetting& setting) {
  if (!setting.value || setting.value->empty())
    return at_letter(request, setting.name_at, setting.name,
                     "whose? as in cgroup='/system.slice/nginx.service'");
  const auto number = number_of_cgroup(*setting.value);
  if (!number) return at_letter(request, setting.value_at, setting.name, number.error().what);
  auto fault = object.set_constant(kCgroupNumber, std::to_string(number->id));
  if (!fault) fault = object.set_constant(kCgroupLevel, std::to_string(number->level));
  return fault ? at_letter(request, setting.name_at, setting.name, fault->what) : Result<>(Done{});
}

std::vector<BlockDevice> devices_here() {
  const auto partitions = format::read_file("/proc/partitions");
  return partitions ? block_devices(format::as_text(*partitions)) : std::vector<BlockDevice>();
}

// The table of a program. Partitions are not in it: their requests are the disk's.
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

// Programs that ask for them (bpf/programs/recorders/disks.h) know the disks by name, and `disk` is one.
Result<> set_disks(bpf::UserObject& object, const EventRequest& request) {
  if (object.constant(kDisks).empty()) return Done{};
  std::vector<BlockDevice> devices = devices_here();
  const auto wanted = std::ranges::find(request.constants, kDisk, &ConstantSetting::name);
  if (wanted != request.constants.end()) {
    const auto disk = disk_named(devices, wanted->value.value_or(""));
    if (!disk) return at_letter(request, wanted->value_at, wanted->name, disk.error().what);
    if (const auto fault = object.set_constant("dev", std::to_string(disk->dev)))
      return at_letter(request, wanted->name_at, wanted->name, fault->what);
    devices = {*disk};
  }
  const auto table = table_of(devices);
  object.set_own(std::string(kDisks), std::as_bytes(std::span(table)));
  return Done{};
}

struct NamedUnit {
  std::string_view end;  // of an option's name
  cli::NumberUnit unit;
  std::uint64_t size;
};
constexpr NamedUnit kNamedUnits[] = {{"_ns", cli::NumberUnit::Time, 1},
                                     {"_us", cli::NumberUnit::Time, 1'000},
                                     {"_ms", cli::NumberUnit::Time, 1'000'000},
                                     {"_bytes", cli::NumberUnit::Bytes, 1}};

// For "min_us=10ms": what to write instead. Empty: it is no number with a unit.
std::string value_without_unit(const ConstantSetting& setting) {
  const auto row = std::ranges::find_if(
      kNamedUnits, [&](const NamedUnit& each) { return std::string_view(setting.name).ends_with(each.end); });
  if (row == std::end(kNamedUnits) || !setting.value) return {};
  const auto parsed = cli::parse_expression(setting.name, *setting.value);
  if (!parsed || parsed->nodes.size() != 1 || parsed->root().operation != cli::Operation::Whole ||
      parsed->root().unit != row->unit || parsed->root().whole % row->size != 0)
    return {};
  return fmt::format("; its unit stands in its name: {}={}", setting.name, parsed->root().whole / row->size);
}

}  // namespace

Result<> set_constants(bpf::UserObject& object, const EventRequest& request) {
  for (const ConstantSetting& setting : request.constants) {
    const auto fault = object.set_constant(setting.name, setting.value);
    if (fault) {
      const bool is_in_name = fault->part == bpf::ConstantFault::Part::Name;
      std::string hint =
          cli::suggestion(is_in_name ? setting.name : setting.value.value_or(""), fault->known);
      if (!is_in_name && hint.empty()) hint = value_without_unit(setting);
      return at_letter(request, (is_in_name ? setting.name_at : setting.value_at) + fault->at, setting.name,
                       fault->what + hint);
    }
    if (request.recorder.empty() || setting.name != kCgroup) continue;
    if (auto done = set_cgroup(object, request, setting); !done) return done;
  }
  return request.recorder.empty() ? Result<>(Done{}) : set_disks(object, request);
}

std::string distinct_name(const std::string& name, const std::function<bool(const std::string&)>& is_taken) {
  std::string distinct = name;
  for (int number = 2; is_taken(distinct); ++number) distinct = fmt::format("{}.{}", name, number);
  return distinct;
}

}  // namespace tacho::record
