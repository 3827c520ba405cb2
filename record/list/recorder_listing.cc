#include "record/list/recorder_listing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "bpf/user_object.h"
#include "cli/nearest.h"
#include "format/base/printable.h"
#include "record/events/recorders.h"
#include "record/list/listing.h"
#include "record/objects/followed_functions.h"
#include "record/objects/opened_objects.h"

namespace tacho::record {
namespace {

using format::printable;

bool matches(const std::string& pattern, const std::string& name) {
  if (pattern.find_first_of("*?[") == std::string::npos) return name.find(pattern) != std::string::npos;
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// Probes on functions that the recorder finds: of programs, of the kernel (follow), or either (func).
std::string function_hooks(const bpf::UserObject& object) {
  constexpr std::string_view kOfUser =
      "  uprobe.multi: the entry and the return of all functions at once (Linux 6.6)\n"
      "  or uprobe and uretprobe: one by one\n";
  constexpr std::string_view kOfKernel =
      "  kprobe.multi: the entry and the return of all functions at once (Linux 5.18 with CONFIG_FPROBE)\n"
      "  or kprobe and kretprobe: one by one (Linux 5.15)\n";
  if (follows_objects(object)) return std::string(kOfKernel);
  const bool is_of_either = !object.constant("tacho_in_kernel").empty();
  return is_of_either ? fmt::format("  of programs:\n{}  of the kernel:\n{}", kOfUser, kOfKernel)
                      : std::string(kOfUser);
}

std::string hooks_in_words(const bpf::UserObject& object) {
  if (object.wants_functions() && object.wanted_functions().empty()) return function_hooks(object);
  std::string out;
  std::string group;
  for (const bpf::Hooks& each : object.hooks()) {
    const bool is_second = !each.group.empty() && each.group == group;
    group = each.group;
    out += fmt::format("  {}{}{}\n", is_second ? "or " : "",
                       printable(fmt::format("{}", fmt::join(each.sections, " and "))),
                       each.optional ? " (where there is one)" : "");
  }
  return out;
}

std::string fields_in_words(const format::PayloadSchema& schema) {
  std::vector<std::string> names;
  for (const format::PayloadField& field : schema.fields)
    if (field.role != "stack") names.push_back(field.name);
  return printable(fmt::format("{}", fmt::join(names, ", ")));
}

// What --filter may name.
std::string asked_in_words(const bpf::UserObject& object) {
  const auto& channels = object.channels();
  const auto asks = [&](const bpf::Channel& each) { return object.asks_filter_of(each); };
  const auto is_sent_at_once = [&](const bpf::Channel& each) {
    return asks(each) && each.kind == bpf::ChannelKind::PerfEventArray;
  };
  const bool any = std::ranges::any_of(channels, asks);
  const bool of_thread = object.asks_filter() || (any && std::ranges::all_of(channels, is_sent_at_once));
  if (any && of_thread) return "pid, tid, uid, gid, cpu, comm, cgroup and members of the event";
  if (any) return "members of the event";
  return of_thread ? "pid, tid, uid, gid, cpu, comm and cgroup" : "";
}

// Of one without an object: its options are an event's terms.
std::string clock_help(const RecorderRow& row) {
  return fmt::format(
      "{}: {}\n\nOptions, as {}/NAME=VALUE,.../:\n"
      "  {:<24} samples a second and CPU that is busy; otherwise 99\n"
      "  {:<24} fp, ehframe, dwarf, or no: how stacks are taken; otherwise as with -g\n"
      "  {:<24} most frames of a stack\n"
      "\nIt is the event cpu-clock, and takes --filter and the modifiers u (only programs) and k (only the "
      "kernel): profile/hz=99/u.\n"
      "\nThen: {}\n",
      row.name, row.summary, row.name, "hz", "call-graph", "max-stack", row.view);
}

// Of one that is a probe of one's own.
std::string probe_help(const RecorderRow& row) {
  std::string out =
      fmt::format("{}: {}\n\nOptions, as {}/NAME=VALUE,.../:\n", row.name, row.summary, row.name);
  for (const ProbeRecorderOption& option : probe_recorder_options(row.name))
    out += fmt::format("  {:<24} {}\n", option.name, option.help);
  return out + fmt::format("\nHooks:\n  the probe or tracepoint that is named\n\nThen: {}\n", row.view);
}

}  // namespace

Result<std::string> list_recorders(const ListOptions& options) {
  const std::string& pattern = options.pattern;
  std::string out;
  std::vector<std::string> names;
  for (const RecorderRow& row : recorders()) {
    names.emplace_back(row.name);
    if (!matches(pattern, names.back())) continue;
    if (options.json) {
      JsonLine json;
      json.text("name", row.name);
      json.text("tells", row.summary);
      if (!row.preset.empty()) json.text("preset", fmt::format("{}/{}/", row.object, row.preset));
      out += json.finished();
    } else {
      out += fmt::format("  {:<14} {}{}\n", row.name, row.summary,
                         row.preset.empty() ? "" : fmt::format(" ({}/{}/)", row.object, row.preset));
    }
  }
  if (out.empty())
    return use_error(fmt::format("no recorder matches '{}'{}", pattern, cli::suggestion(pattern, names)));
  return out;
}

Result<std::string> recorder_help(const EventRequest& request) {
  const RecorderRow* const row = find_recorder(request.recorder);
  if (row != nullptr && row->object.empty()) return clock_help(*row);
  if (row != nullptr && row->object == kProbeObject) return probe_help(*row);
  const auto bytes = row != nullptr ? object_of(request) : Result<format::Bytes>(format::Bytes());
  if (!bytes) return bytes.error();
  auto object = row != nullptr ? bpf::UserObject::open_shipped(request.recorder, *bytes, {})
                               : bpf::UserObject::open(request.object()->path, {});
  if (!object) return std::move(object.error());
  const std::string path = printable(request.object()->path);
  std::string out = row != nullptr ? fmt::format("{}: {}\n", row->name, row->summary) : path + "\n";
  if (row != nullptr && !row->preset.empty()) out += fmt::format("It is {}/{}/.\n", row->object, row->preset);
  const auto options = object->constants();
  if (!options.empty())
    out += fmt::format("\nOptions, as {}/NAME=VALUE,.../:\n", row != nullptr ? row->name : path);
  else if (row == nullptr)
    out += "\nOptions: no `const volatile` global has a HELP(\"...\") (tacho/event.h)\n";
  for (const bpf::ObjectOption& option : options)
    out += fmt::format("  {:<24} {}\n", printable(fmt::format("{} ({})", option.name, option.type)),
                       printable(option.help));
  out += "\nEvents:\n";
  for (const bpf::Channel& channel : object->channels())
    out += fmt::format("  {:<10} {}\n", printable(channel.event),
                       channel.schema ? fields_in_words(*channel.schema) : "");
  out += "\nHooks:\n" + hooks_in_words(*object);
  if (const std::string about = asked_in_words(*object); !about.empty())
    out += fmt::format("\n--filter may ask about {} (docs/recording.md).\n", about);
  if (row != nullptr) out += fmt::format("\nThen: {}\n", row->view);
  return out;
}

}  // namespace tacho::record
