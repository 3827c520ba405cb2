#include "record/events/probe_recorders.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "cli/expression.h"
#include "cli/nearest.h"
#include "cli/shell_word.h"
#include "record/events/recorders.h"

namespace tacho::record {
namespace {

constexpr std::string_view kArgdist = "argdist";
constexpr ProbeRecorderOption kOptions[] = {
    {"probe",
     "where, and which values: probe='uprobe:libc.so.6:write(fd=arg1:s32, count=arg3)', or a tracepoint"},
    {"if",
     "only hits for which this holds: if='count > 4096'; asked in the kernel, of the values, and of pid, "
     "tid, "
     "comm, cgroup, uid, gid and cpu"},
    {"pid", "only this process"},
    {"tid", "only this thread"},
    {"comm", "only threads of this name"},
};
constexpr ProbeRecorderOption kOfArgdist[] = {
    {"value",
     "what is shown as a distribution, in powers of two: value='count'; without, hits are counted; computed "
     "(value='count / 1024') it takes a sample for each hit"},
    {"key", "for whom each: key='comm,fd'"},
};

Error wrong(const EventRequest& request, std::size_t at, const std::string& what) {
  return use_error(fmt::format("-e {}: letter {}: {}", request.text, at + 1, what));
}

const ConstantSetting* setting(const EventRequest& request, std::string_view name) {
  const auto found = std::ranges::find(request.constants, name, &ConstantSetting::name);
  return found == request.constants.end() ? nullptr : &*found;
}
std::string text_of(const EventRequest& request, std::string_view name) {
  const ConstantSetting* const one = setting(request, name);
  return one != nullptr ? one->value.value_or("") : std::string();
}

Result<> check_options(const EventRequest& request) {
  std::vector<std::string> names;
  for (const ProbeRecorderOption& each : probe_recorder_options(request.recorder))
    names.emplace_back(each.name);
  for (const ConstantSetting& each : request.constants) {
    if (std::ranges::find(names, each.name) == names.end())
      return wrong(
          request, each.name_at,
          fmt::format("{}: there is no such option{}", each.name, cli::suggestion(each.name, names)));
    if (!each.value || each.value->empty())
      return wrong(request, each.name_at, each.name + ": a value is missing");
  }
  if (setting(request, "probe") != nullptr) return Done{};
  return use_error(fmt::format("-e {}: which probe? probe='uprobe:libc.so.6:write(fd=arg1:s32, count=arg3)'",
                               request.text));
}

// What the kernel can be asked about besides a hit's own values (condition.h).
constexpr std::string_view kKnownToKernel[] = {"pid",       "tid", "comm", "cgroup",
                                               "cgroup_id", "uid", "gid",  "cpu"};

// All that chooses hits in the kernel, as one condition. Samples of the kernel's own tracepoints have another
// language for it.
Result<std::string> condition_of(const EventRequest& request, bool is_tracepoint) {
  std::string all;
  const auto add = [&all](const std::string& one) { all += (all.empty() ? "(" : " && (") + one + ")"; };
  for (const char* const number : {"pid", "tid"}) {
    const std::string value = text_of(request, number);
    if (value.empty()) continue;
    const std::size_t at = setting(request, number)->value_at;
    if (value.find_first_not_of("0123456789") != std::string::npos)
      return wrong(request, at, fmt::format("{}: '{}' is not a number", number, value));
    if (is_tracepoint && number == std::string_view("pid"))
      return wrong(request, at, "pid: tracepoints know threads alone; -p chooses a process, tid= a thread");
    add(fmt::format("{} == {}", is_tracepoint ? "common_pid" : number, value));
  }
  if (const std::string name = text_of(request, "comm"); !name.empty()) {
    if (name.find_first_of("\"\\") != std::string::npos)
      return wrong(request, setting(request, "comm")->value_at, "comm: a name without quotes");
    add(fmt::format("{} == \"{}\"", is_tracepoint ? "COMM" : "comm", name));
  }
  const std::string written = text_of(request, "if");
  if (written.empty()) return all;
  if (!is_tracepoint) {
    const auto expression = cli::parse_expression("if", written);
    if (!expression) return Error{expression.error()}.in("-e " + request.text);
  }
  add(written);
  return all;
}

constexpr std::string_view kOwnPrefix = "sample.";

bool is_plain_name(std::string_view text) {
  return text.find_first_of(" +-*/%&|()") == std::string_view::npos;
}

// What conditions and views know of every sample (report/query/own_values.cc).
constexpr std::string_view kOfEverySample[] = {"comm", "pid",    "tid",    "cpu",
                                               "time", "period", "cgroup", "event"};

// The names in an expression; of what cannot be read none, as its reader tells what is wrong.
std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  const auto expression = cli::parse_expression("", text);
  if (!expression) return names;
  for (const cli::ExpressionNode& node : expression->nodes)
    if (node.operation == cli::Operation::Name && node.text != "true" && node.text != "false")
      names.push_back(node.text);
  return names;
}

std::vector<std::string> names_in_list(std::string_view text) {
  std::vector<std::string> names;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    names.emplace_back(one);
  }
  return names;
}

bool is_known_to_kernel(std::string_view name) {
  if (name.starts_with(kOwnPrefix)) name.remove_prefix(kOwnPrefix.size());
  return std::ranges::find(kKnownToKernel, name) != std::end(kKnownToKernel);
}

// The names that `if`, value and key ask for. `is_filtered`: `if` is the kernel's own to check.
Result<std::vector<NeededField>> needed_fields(const EventRequest& request, bool is_filtered) {
  std::vector<NeededField> needed;
  const auto add = [&](std::string_view option, const std::vector<std::string>& names) {
    const ConstantSetting* const one = setting(request, option);
    for (const std::string& name : names)
      needed.push_back({name, fmt::format("-e {}: letter {}: {}", request.text, one->value_at + 1, option)});
  };
  const std::string condition = text_of(request, "if"), value = text_of(request, "value"),
                    key = text_of(request, "key");
  if (!condition.empty() && !is_filtered) {
    std::vector<std::string> names = names_in(condition);
    std::erase_if(names, is_known_to_kernel);
    add("if", names);
  }
  if (!value.empty()) {
    const auto expression = cli::parse_expression("value", value);
    if (!expression) return Error{expression.error()}.in("-e " + request.text);
    add("value", names_in(value));
  }
  add("key", names_in_list(key));
  return needed;
}

// Those of a probe are known here; tracefs knows those of a tracepoint.
Result<> check_fields(const EventRequest& request, EventRequest& probe, bool counts) {
  auto needed = needed_fields(request, probe.kind == EventKind::Tracepoint && !counts);
  if (!needed) return std::move(needed.error());
  if (probe.kind == EventKind::Tracepoint) {
    probe.needs = std::move(*needed);
    return Done{};
  }
  std::vector<std::string> fields;
  for (const ArgumentRequest& argument : probe.arguments) fields.push_back(argument.name);
  for (const NeededField& one : *needed)
    if (auto wrong = unknown_field(one, probe.name, fields)) return std::move(*wrong);
  return Done{};
}

// What argdist shows: a distribution of a value, or how many samples there are of each key.
std::string plain_view_of(const EventRequest& request) {
  const std::string value = text_of(request, "value"), key = text_of(request, "key");
  if (request.recorder != kArgdist) return std::string(find_recorder(request.recorder)->view);
  if (value.empty())
    return fmt::format("tacho table --by {} --columns count", cli::shell_word(key.empty() ? "comm" : key));
  if (!is_plain_name(value))
    return fmt::format("tacho table --value {} --by {}", cli::shell_word(value),
                       cli::shell_word(key.empty() ? "comm" : key));
  return fmt::format("tacho hist --field {} --by {}", cli::shell_word(value),
                     cli::shell_word(key.empty() ? "none" : key));
}

// Puts the values that hits are counted by in front of the others, keys first, as ProbeSum has them. Of a
// tracepoint its fields are asked for, those of the condition too. What comes back: why hits cannot be
// counted in the kernel; empty: they are.
std::string add_up(const EventRequest& request, EventRequest& probe) {
  const std::string value = text_of(request, "value"), key = text_of(request, "key");
  const bool is_tracepoint = probe.kind == EventKind::Tracepoint;
  std::vector<ArgumentRequest> front;
  bpf::ProbeSum sum;
  sum.has_value = !value.empty();
  const auto take = [&](const std::string& name) {
    const auto known = std::ranges::find(probe.arguments, name, &ArgumentRequest::name);
    if (known != probe.arguments.end())
      front.push_back(*known);
    else if (is_tracepoint)
      front.push_back({name, name, {}});
    else
      return false;
    return true;
  };
  if (sum.has_value && !is_plain_name(value))
    return fmt::format("the value '{}' is computed when it is shown", value);
  for (std::string name : names_in_list(key.empty() ? "comm" : key)) {
    const bool is_own = name.starts_with(kOwnPrefix);
    if (is_own) name = name.substr(kOwnPrefix.size());
    const bool is_among_values =
        std::ranges::find(probe.arguments, name, &ArgumentRequest::name) != probe.arguments.end();
    const bool is_every = std::ranges::find(kOfEverySample, name) != std::end(kOfEverySample);
    if (is_among_values && !is_own && is_every)
      return fmt::format(
          "the key '{0}' is a value of the probe and of every sample; give it another name: x={0}", name);
    if (name == "pid") continue;  // always
    bool* const flag = name == "tid"    ? &sum.by_thread
                       : name == "cpu"  ? &sum.by_cpu
                       : name == "comm" ? &sum.by_name
                                        : nullptr;
    if (flag != nullptr)
      *flag = true;
    else if (is_every)
      return fmt::format("the key '{}' is known of samples alone", name);
    else if (name == value)
      return fmt::format("'{}' is key and value", name);
    else if (std::ranges::find(front, name, &ArgumentRequest::name) == front.end() && take(name))
      ++sum.keys;
  }
  if (sum.has_value && !take(value)) return fmt::format("the value '{}' is known of samples alone", value);
  for (const ArgumentRequest& other : probe.arguments)
    if (std::ranges::find(front, other.name, &ArgumentRequest::name) == front.end()) front.push_back(other);
  if (is_tracepoint)
    for (const std::string& name : names_in(text_of(request, "if")))
      if (!is_known_to_kernel(name) && std::ranges::find(front, name, &ArgumentRequest::name) == front.end())
        front.push_back({name, name, {}});
  if (front.size() > bpf::kMostProbeArguments)
    return fmt::format("key, value and condition name more than {} values", bpf::kMostProbeArguments);
  probe.arguments = std::move(front);
  probe.sum = sum;
  return {};
}

Result<std::vector<EventRequest>> probes_of(const EventRequest& request, const ParseEvents& parse) {
  if (auto sound = check_options(request); !sound) return std::move(sound.error());
  auto probes = parse(text_of(request, "probe"));
  if (!probes) return Error{std::move(probes.error())}.in(fmt::format("-e {}: probe", request.text));
  for (EventRequest& each : *probes) {
    if (each.kind != EventKind::Probe && each.kind != EventKind::Tracepoint)
      return use_error(
          fmt::format("-e {}: probe: '{}' is neither a probe nor a tracepoint", request.text, each.text));
    const bool counts = request.recorder == kArgdist;
    if (auto known = check_fields(request, each, counts); !known) return std::move(known.error());
    if (counts) each.no_sum = add_up(request, each);
    auto condition = condition_of(request, each.kind == EventKind::Tracepoint && !each.sum);
    if (!condition) return std::move(condition.error());
    each.filter = std::move(*condition);
    if (!each.filter.empty()) each.filter_place = "-e " + request.text + ": if";
    each.catalogue_name = request.recorder;
    each.view = plain_view_of(request);
  }
  return probes;
}

}  // namespace

std::optional<Error> unknown_field(const NeededField& needed, std::string_view event,
                                   std::span<const std::string> fields) {
  std::string_view name = needed.name;
  if (std::ranges::find(fields, name) != fields.end()) return std::nullopt;
  if (name.starts_with(kOwnPrefix)) name.remove_prefix(kOwnPrefix.size());
  if (std::ranges::find(kOfEverySample, name) != std::end(kOfEverySample)) return std::nullopt;
  std::vector<std::string> names(fields.begin(), fields.end());
  names.insert(names.end(), std::begin(kOfEverySample), std::end(kOfEverySample));
  return use_error(fmt::format(
      "{}: {} has no '{}'; {}{}; every sample has {}{}", needed.place, event, needed.name,
      fields.empty() ? "it has no fields: a probe has those in its parentheses, as (fd=arg1)" : "it has ",
      fmt::join(fields, ", "), fmt::join(kOfEverySample, ", "), cli::suggestion(needed.name, names)));
}

std::vector<ProbeRecorderOption> probe_recorder_options(std::string_view recorder) {
  std::vector<ProbeRecorderOption> options(std::begin(kOptions), std::end(kOptions));
  if (recorder == kArgdist) options.insert(options.end(), std::begin(kOfArgdist), std::end(kOfArgdist));
  return options;
}

Result<std::vector<EventRequest>> with_their_probes(std::vector<EventRequest> requests,
                                                    const ParseEvents& parse) {
  std::vector<EventRequest> out;
  for (EventRequest& request : requests) {
    const RecorderRow* const row = find_recorder(request.recorder);
    if (row == nullptr || row->object != kProbeObject || request.asks_for_help) {
      out.push_back(std::move(request));
      continue;
    }
    auto probes = probes_of(request, parse);
    if (!probes) return probes;
    std::ranges::move(*probes, std::back_inserter(out));
  }
  return out;
}

}  // namespace tacho::record
