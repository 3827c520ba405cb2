#include "record/object_options.h"

#include <fmt/format.h>

#include <cstddef>
#include <string_view>
#include <utility>

#include "record/events/cgroup.h"

namespace tacho::record {
namespace {

// Options of all recorders (bpf/programs/recorders/recorder.h): the first is for people, the others are what
// programs compare with.
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

}  // namespace

Result<> set_constants(bpf::UserObject& object, const EventRequest& request) {
  for (const ConstantSetting& setting : request.constants) {
    const auto fault = object.set_constant(setting.name, setting.value);
    if (fault) {
      const bool is_in_name = fault->part == bpf::ConstantFault::Part::Name;
      return at_letter(request, (is_in_name ? setting.name_at : setting.value_at) + fault->at, setting.name,
                       fault->what);
    }
    if (request.recorder.empty() || setting.name != kCgroup) continue;
    if (auto done = set_cgroup(object, request, setting); !done) return done;
  }
  return Done{};
}

std::string distinct_name(const std::string& name, const std::function<bool(const std::string&)>& is_taken) {
  std::string distinct = name;
  for (int number = 2; is_taken(distinct); ++number) distinct = fmt::format("{}.{}", name, number);
  return distinct;
}

}  // namespace tacho::record
