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
     "only samples for which this is so: if='count > 4096'; what it says of pid, tid, comm, cgroup, uid, gid "
     "and cpu alone, and of tracepoints, is asked in the kernel"},
    {"pid", "only this process"},
    {"tid", "only this thread"},
    {"comm", "only threads of this name"},
};
constexpr ProbeRecorderOption kOfArgdist[] = {
    {"value",
     "what is shown as a distribution: value='count', or computed: value='count / 1024'; without, samples "
     "are counted"},
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

// Of a probe's sample the kernel can be asked about these before it records; its values are compared when it
// is shown.
bool is_known_to_kernel(const cli::Expression& expression) {
  constexpr std::string_view kKnown[] = {"pid", "tid", "comm", "cgroup", "cgroup_id", "uid", "gid", "cpu"};
  return std::ranges::all_of(expression.nodes, [&](const cli::ExpressionNode& node) {
    return node.operation != cli::Operation::Name || std::ranges::find(kKnown, node.text) != std::end(kKnown);
  });
}

// All that chooses samples in the kernel, as one condition. The kernel's own tracepoints have another
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
    if (!is_known_to_kernel(*expression)) return all;
  }
  add(written);
  return all;
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

// The names that `if`, value and key ask for when samples are shown.
Result<std::vector<NeededField>> needed_fields(const EventRequest& request, bool is_tracepoint) {
  std::vector<NeededField> needed;
  const auto add = [&](std::string_view option, const std::vector<std::string>& names) {
    const ConstantSetting* const one = setting(request, option);
    for (const std::string& name : names)
      needed.push_back({name, fmt::format("-e {}: letter {}: {}", request.text, one->value_at + 1, option)});
  };
  const std::string condition = text_of(request, "if"), value = text_of(request, "value"),
                    key = text_of(request, "key");
  if (!condition.empty() && !is_tracepoint) {
    const auto expression = cli::parse_expression("if", condition);
    if (expression && !is_known_to_kernel(*expression)) add("if", names_in(condition));
  }
  if (!value.empty()) {
    const auto expression = cli::parse_expression("value", value);
    if (!expression) return Error{expression.error()}.in("-e " + request.text);
    add("value", names_in(value));
  }
  std::vector<std::string> keys;
  for (std::string_view rest = key; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    keys.emplace_back(one);
  }
  add("key", keys);
  return needed;
}

// Those of a probe are known here; tracefs knows those of a tracepoint.
Result<> check_fields(const EventRequest& request, EventRequest& probe) {
  auto needed = needed_fields(request, probe.kind == EventKind::Tracepoint);
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
  const bool is_field = value.find_first_of(" +-*/%&|") == std::string::npos;
  if (!is_field)
    return fmt::format("tacho table --value {} --by {}", cli::shell_word(value),
                       cli::shell_word(key.empty() ? "comm" : key));
  return fmt::format("tacho hist --field {} --by {}", cli::shell_word(value),
                     cli::shell_word(key.empty() ? "none" : key));
}

std::string view_of(const EventRequest& request, bool is_tracepoint) {
  const std::string view = plain_view_of(request), written = text_of(request, "if");
  if (written.empty() || is_tracepoint) return view;
  const auto expression = cli::parse_expression("if", written);
  return !expression || is_known_to_kernel(*expression)
             ? view
             : fmt::format("{} --where {}", view, cli::shell_word(written));
}

Result<std::vector<EventRequest>> probes_of(const EventRequest& request, const ParseEvents& parse) {
  if (auto sound = check_options(request); !sound) return std::move(sound.error());
  auto probes = parse(text_of(request, "probe"));
  if (!probes) return Error{std::move(probes.error())}.in(fmt::format("-e {}: probe", request.text));
  for (EventRequest& each : *probes) {
    if (each.kind != EventKind::Probe && each.kind != EventKind::Tracepoint)
      return use_error(
          fmt::format("-e {}: probe: '{}' is neither a probe nor a tracepoint", request.text, each.text));
    auto condition = condition_of(request, each.kind == EventKind::Tracepoint);
    if (!condition) return std::move(condition.error());
    if (auto known = check_fields(request, each); !known) return std::move(known.error());
    each.filter = std::move(*condition);
    each.catalogue_name = request.recorder;
    each.view = view_of(request, each.kind == EventKind::Tracepoint);
  }
  return probes;
}

}  // namespace

std::optional<Error> unknown_field(const NeededField& needed, std::string_view event,
                                   std::span<const std::string> fields) {
  constexpr std::string_view kPrefix = "sample.";
  std::string_view name = needed.name;
  if (std::ranges::find(fields, name) != fields.end()) return std::nullopt;
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
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
