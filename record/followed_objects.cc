#include "record/followed_objects.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bpf/kernel_probes.h"
#include "bpf/kernel_support.h"
#include "bpf/object_types.h"
#include "cli/nearest.h"
#include "format/file.h"
#include "record/host/kernel_functions.h"

namespace tacho::record {
namespace {

// Each costs time and memory when it is attached, and slows every call of it.
constexpr std::size_t kMostTogether = 5000, kMostOneByOne = 600;
constexpr std::string_view kShow = "show", kShownFields = "shown";

// Of a `const volatile` global.
std::string text_of(const bpf::UserObject& object, std::string_view name) {
  const auto bytes = object.constant(name);
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return std::string(all.substr(0, all.find('\0')));
}

std::vector<std::string> members_of(std::string_view list) {
  std::vector<std::string> members;
  while (!list.empty()) {
    std::string_view one = list.substr(0, list.find(','));
    list.remove_prefix(std::min(one.size() + 1, list.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (!one.empty()) members.emplace_back(one);
  }
  return members;
}

// A field of the event is no member of the object.
bool is_own_field(const bpf::UserObject& object, const std::string& name) {
  return std::ranges::any_of(object.channels(), [&](const bpf::Channel& channel) {
    return channel.schema && std::ranges::find(channel.schema->fields, name, &format::PayloadField::name) !=
                                 channel.schema->fields.end();
  });
}

Result<> tell_members(bpf::UserObject& object, const bpf::ObjectTypes& types, const std::string& type) {
  const auto paths = members_of(text_of(object, kShow));
  if (paths.size() > TACHO_MOST_SHOWN)
    return use_error(fmt::format("show: {} members; at most {} are told", paths.size(),
                                 static_cast<int>(TACHO_MOST_SHOWN)));
  std::array<tacho_member_place, TACHO_MOST_SHOWN> places{};
  std::vector<format::PayloadField> fields;
  for (const std::string& path : paths) {
    auto member = types.member(type, path);
    if (!member) return std::move(member.error()).in("show");
    if (is_own_field(object, path)) member->field.name = "object." + path;
    if (std::ranges::find(fields, member->field.name, &format::PayloadField::name) != fields.end())
      return use_error("show: " + path + " stands there twice");
    places[fields.size()] = member->place;
    fields.push_back(std::move(member->field));
  }
  const auto count = static_cast<std::uint32_t>(fields.size());
  object.set_own("tacho_shown", std::as_bytes(std::span(places)));
  object.set_own("tacho_shown_count", std::as_bytes(std::span(&count, 1)));
  object.tell_fields(kShownFields, fields);
  return Done{};
}

// Of the functions that the kernel lets be traced; of all that it has where it does not list them.
Result<std::map<std::string, std::vector<std::uint64_t>>> probed_places(
    const std::vector<std::string>& names) {
  const auto kallsyms = format::read_file("/proc/kallsyms");
  if (!kallsyms) return kallsyms.error();
  const auto folder = bpf::find_tracefs({});
  const auto listed = format::read_file(folder ? *folder + "/available_filter_functions" : std::string());
  return function_places(listed ? format::as_text(*listed) : std::string_view(), format::as_text(*kallsyms),
                         names);
}

struct Chosen {
  std::vector<bpf::TakingFunction> functions;
  std::vector<std::uint64_t> addresses;  // as many
  std::size_t not_traceable = 0, ambiguous = 0;
};

Result<Chosen> choose(std::vector<bpf::TakingFunction> functions) {
  std::vector<std::string> names;
  for (const bpf::TakingFunction& each : functions) names.push_back(each.name);
  const auto places = probed_places(names);
  if (!places) return places.error();
  Chosen chosen;
  for (bpf::TakingFunction& each : functions) {
    const auto found = places->find(each.name);
    if (found == places->end() || found->second.empty()) {
      ++chosen.not_traceable;
    } else if (found->second.size() > 1) {
      ++chosen.ambiguous;
    } else {
      chosen.addresses.push_back(found->second.front());
      chosen.functions.push_back(std::move(each));
    }
  }
  return chosen;
}

std::string counted_in_words(const std::string& type, std::size_t taking, const Chosen& chosen) {
  std::string out = fmt::format("{} functions of the kernel take a {} *", taking, type);
  std::string left;
  if (chosen.not_traceable != 0)
    left += fmt::format("{} that the kernel does not let be traced", chosen.not_traceable);
  if (chosen.ambiguous != 0)
    left += fmt::format("{}{} whose names several have", left.empty() ? "" : ", ", chosen.ambiguous);
  return out +
         fmt::format("; {} are followed{}{}", chosen.functions.size(), left.empty() ? "" : ", not ", left);
}

// The cookies, and where `start` and `stop` are among the functions.
Result<std::vector<std::uint64_t>> cookies_of(const bpf::UserObject& object, const Chosen& chosen) {
  std::vector<std::uint64_t> cookies;
  std::vector<std::string> names;
  for (const bpf::TakingFunction& each : chosen.functions) {
    cookies.push_back(each.argument);
    names.push_back(each.name);
  }
  for (const auto& [option, bit] : {std::pair{"start", TACHO_STARTS}, std::pair{"stop", TACHO_STOPS}}) {
    const std::string name = text_of(object, option);
    if (name.empty()) continue;
    const auto found = std::ranges::find(names, name);
    if (found == names.end())
      return use_error(fmt::format("{}: '{}' is none of the functions that are followed{}", option, name,
                                   cli::suggestion(name, names)));
    cookies[static_cast<std::size_t>(found - names.begin())] |= static_cast<std::uint64_t>(bit);
  }
  if (text_of(object, "start").empty() && !text_of(object, "stop").empty())
    return use_error("stop: goes with start=FUNCTION");
  return cookies;
}

Result<bpf::FunctionTargets> found_functions(bpf::UserObject& object, const Messages& messages) {
  const std::string type = text_of(object, "type");
  const std::string pattern = text_of(object, "functions");
  if (type.empty()) return use_error("which objects? type='struct bio'");
  const auto types = bpf::ObjectTypes::of_this_kernel();
  if (!types) return types.error();
  auto taking = types->functions_taking(type);
  if (!taking) return taking.error();
  if (auto told = tell_members(object, *types, type); !told) return std::move(told.error());
  const std::size_t all = taking->size();
  const std::string start = text_of(object, "start"), stop = text_of(object, "stop");
  std::erase_if(*taking, [&](const bpf::TakingFunction& each) {
    return !pattern.empty() && each.name != start && each.name != stop &&
           ::fnmatch(pattern.c_str(), each.name.c_str(), 0) != 0;
  });
  if (taking->empty())
    return use_error(
        fmt::format("none of the {} functions that take a {} * matches '{}'", all, type, pattern));
  bpf::FunctionTargets targets;
  targets.in_kernel = true;
  targets.notice = [messages](std::string_view line) { messages.note("follow: " + std::string(line)); };
  targets.log = [messages](std::string_view line) { messages.detail("follow: " + std::string(line)); };
  targets.one_by_one = !bpf::takes_functions_together();
  auto chosen = choose(std::move(*taking));
  if (!chosen) return chosen.error();
  if (chosen->functions.empty())
    return use_error(counted_in_words(type, all, *chosen) +
                     "; or their addresses are hidden (kernel.kptr_restrict)");
  const std::size_t most = targets.one_by_one ? kMostOneByOne : kMostTogether;
  if (chosen->functions.size() > most)
    return use_error(
        fmt::format("{} functions that take a {} * can be followed, more than {}{}; choose some: "
                    "functions='submit_*'",
                    chosen->functions.size(), type, most,
                    targets.one_by_one ? ", as this kernel puts each probe on by itself "
                                         "(CONFIG_FPROBE puts them on together)"
                                       : ""));
  auto cookies = cookies_of(object, *chosen);
  if (!cookies) return cookies.error();
  // Before anything is said that sounds as if they were followed.
  if (targets.one_by_one) {
    if (auto taken = bpf::takes_functions_one_by_one(); !taken) return std::move(taken.error());
  }
  targets.offsets = chosen->addresses;
  targets.cookies = std::move(*cookies);
  messages.note(fmt::format("follow: {}{}", counted_in_words(type, all, *chosen),
                            targets.one_by_one ? ", each by a probe of its own" : ""));
  return targets;
}

}  // namespace

bool follows_objects(const bpf::UserObject& object) {
  return object.wants_functions() && !object.constant("tacho_shown").empty();
}

bool follows_objects_anywhere(const bpf::UserObject& object) {
  return follows_objects(object) && !text_of(object, "start").empty();
}

EventRequest with_members_joined(EventRequest request, const bpf::UserObject& object) {
  const auto own = object.constants();
  std::vector<ConstantSetting> settings;
  for (ConstantSetting& each : request.constants) {
    const bool is_own = std::ranges::find(own, each.name, &bpf::ObjectOption::name) != own.end();
    const bool is_member =
        !is_own && !each.value && !settings.empty() && settings.back().name == kShow && settings.back().value;
    if (is_member)
      *settings.back().value += "," + each.name;
    else
      settings.push_back(std::move(each));
  }
  request.constants = std::move(settings);
  return request;
}

Result<bpf::FunctionTargets> followed_objects(const EventRequest& request, bpf::UserObject& object,
                                              const Messages& messages) {
  auto found = found_functions(object, messages);
  if (found) return found;
  Error error = std::move(found.error());
  error.what = fmt::format("-e {}: {}", request.text, error.what);
  return error;
}

}  // namespace tacho::record
