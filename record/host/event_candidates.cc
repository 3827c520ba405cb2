#include "record/host/event_candidates.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "bpf/support/shipped_files.h"
#include "bpf/user_object.h"
#include "cli/completion.h"
#include "cli/message_text.h"
#include "format/base/file.h"
#include "record/events/event_names.h"
#include "record/events/event_spec.h"
#include "record/events/recorders.h"
#include "record/events/target.h"
#include "record/events/tracepoint.h"
#include "record/host/probe_offsets.h"
#include "record/host/running_kernel.h"
#include "record/parse_text.h"

namespace tacho::record {
namespace {

using cli::Candidate;

constexpr std::size_t kNone = std::string_view::npos;
// Words before a colon, after which a function or a marker is named.
constexpr std::string_view kKernelProbes[] = {"kprobe:", "kretprobe:"};
constexpr std::string_view kUserProbes[] = {"uprobe:", "uretprobe:", "usdt:"};
// The kernel has tens of thousands of functions; so many letters choose some of them.
constexpr std::size_t kFewestLetters = 2;

bool starts_with_any(std::string_view text, std::span<const std::string_view> words) {
  return std::ranges::any_of(words, [text](std::string_view word) { return text.starts_with(word); });
}

// Where the terms of the first event of `text` begin; npos: it has none yet.
std::size_t terms_of(std::string_view text) {
  if (text.starts_with('.') || text.starts_with('/') || text.starts_with('~')) {
    const std::size_t end = std::min(text.find(".o/"), text.find(".c/"));
    return end == kNone || end > text.find(',') ? kNone : end + 3;
  }
  if (starts_with_any(text, kUserProbes)) return kNone;  // the slashes are those of a path
  const std::size_t slash = text.find('/');
  return slash < text.find(',') ? slash + 1 : kNone;
}

// The place of what begins at `at` of its text.
cli::ValuePlace place_at(cli::ValuePlace place, std::size_t at) {
  place.prefix += place.text.substr(0, at);
  place.text.erase(0, at);
  return place;
}

void add_object_options(std::vector<Candidate>& to, const bpf::UserObject& object) {
  for (const bpf::ObjectOption& option : object.constants()) to.push_back({option.name + "=", option.help});
}

void add_recorder_options(std::vector<Candidate>& to, const RecorderRow& row) {
  if (row.object.empty()) {
    to.insert(to.end(), {{"hz=", "samples per second of each busy CPU"},
                         {"call-graph=", "fp, ehframe, dwarf or no"},
                         {"max-stack=", "most frames of a stack"}});
  } else if (row.object == kProbeObject) {
    for (const ProbeRecorderOption& option : probe_recorder_options(row.name))
      to.push_back({std::string(option.name) + "=", std::string(option.help)});
  }
  for (const bpf::ShippedRecorder& each : bpf::shipped_recorders()) {
    if (each.name != row.object) continue;
    if (auto object = bpf::UserObject::open_shipped(std::string(row.name), each.object, {}))
      add_object_options(to, *object);
  }
}

// The options of an event between its slashes. `name`: what stands before the first slash.
std::vector<Candidate> terms_for(const std::string& name) {
  std::vector<Candidate> out;
  if (const RecorderRow* const row = find_recorder(name)) {
    add_recorder_options(out, *row);
    out.push_back({"help/", "prints the options, and what its events hold"});
    return out;
  }
  if (name.ends_with(".o")) {  // C source would have to be compiled for its options
    if (auto object = bpf::UserObject::open(name, {})) add_object_options(out, *object);
    return out;
  }
  if (const auto pmu = Pmus().read_pmu(name)) {
    for (const PmuEvent& event : pmu->events) out.push_back({event.name, event.terms});
    for (const PmuField& field : pmu->fields) out.push_back({field.name + "="});
  }
  for (const std::string& term : general_term_names()) out.push_back({term});
  return out;
}

// The type of a recorder's option, as its help shows it; empty: there is no such option.
std::string type_of_option(const std::string& recorder, std::string_view option) {
  const RecorderRow* const row = find_recorder(recorder);
  for (const bpf::ShippedRecorder& each : bpf::shipped_recorders()) {
    if (row == nullptr || each.name != row->object) continue;
    auto object = bpf::UserObject::open_shipped(recorder, each.object, {});
    if (!object) return {};
    for (const bpf::ObjectOption& known : object->constants())
      if (known.name == option) return known.type;
  }
  return {};
}

void print_terms(const cli::ValuePlace& place, const std::string& name) {
  const cli::ValuePlace last = cli::last_element(place);
  const std::size_t sign = last.text.find('=');
  if (sign == kNone) return cli::print_candidates(last, terms_for(name));
  if (!type_of_option(name, last.text.substr(0, sign)).starts_with("bool")) return;
  cli::print_candidates(place_at(last, sign + 1), std::vector<Candidate>{{"true"}, {"false"}});
}

void print_names(const cli::ValuePlace& place, std::span<const std::string> names) {
  std::vector<Candidate> candidates;
  for (const std::string& name : names) candidates.push_back({name});
  cli::print_candidates(place, candidates);
}

// Functions or markers of a program, once its path is there: "uprobe:/bin/bash:read".
void print_user_probes(const cli::ValuePlace& place) {
  const std::size_t first = place.text.find(':'), second = place.text.find(':', first + 1);
  if (second == kNone) return cli::print_files(place_at(place, first + 1), cli::Offer::Files);
  const auto file = format::read_file(place.text.substr(first + 1, second - first - 1));
  if (!file) return;
  std::vector<std::string> names;
  if (place.text.starts_with("usdt:")) {
    if (const auto markers = usdt_markers(*file))
      for (const UsdtMarker& marker : *markers) names.push_back(marker.provider + ":" + marker.name);
  } else if (auto functions = function_names(*file)) {
    names = std::move(*functions);
  }
  print_names(place_at(place, second + 1), names);
}

void print_kernel_probes(const cli::ValuePlace& place) {
  const cli::ValuePlace name = place_at(place, place.text.find(':') + 1);
  if (name.text.size() < kFewestLetters) return;
  if (const auto kallsyms = format::read_file("/proc/kallsyms"))
    print_names(name, kernel_function_names(format::as_text(*kallsyms)));
}

std::vector<Tracepoint> tracepoints_of(const std::string& system) {
  const auto tracefs = Tracefs::find();
  auto found = tracefs ? tracefs->matching(system, "*") : Result<std::vector<Tracepoint>>(tracefs.error());
  return found ? std::move(*found) : std::vector<Tracepoint>();
}

void print_tracepoints(const cli::ValuePlace& place) {
  const std::size_t colon = place.text.find(':');
  std::vector<std::string> names;
  for (const Tracepoint& each : tracepoints_of(place.text.substr(0, colon))) names.push_back(each.name);
  print_names(place_at(place, colon + 1), names);
}

void print_first_words(const cli::ValuePlace& place) {
  std::vector<Candidate> candidates;
  for (const RecorderRow& row : recorders())
    candidates.push_back({std::string(row.name), std::string(row.summary)});
  for (const ListedEvent& event : named_events()) {
    candidates.push_back({event.name, std::string(event.kind)});
    if (!event.alias.empty()) candidates.push_back({event.alias, std::string(event.kind)});
  }
  for (const std::string& name : Pmus().names()) candidates.push_back({name + "/", "a PMU: its events"});
  for (const std::string_view word : kKernelProbes)
    candidates.push_back({std::string(word), "a function of the kernel"});
  for (const std::string_view word : kUserProbes)
    candidates.push_back({std::string(word), "a program or library, and its function or marker"});
  std::set<std::string> systems;
  for (const Tracepoint& each : tracepoints_of("*")) systems.insert(each.system);
  for (const std::string& system : systems) candidates.push_back({system + ":", "tracepoints"});
  cli::print_candidates(place, candidates);
}

// The processes that run, with their names.
void print_processes(const cli::ValuePlace& place) {
  std::vector<Candidate> candidates;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != kNone) continue;
    const auto comm = format::read_file(entry.path() / "comm");
    if (!comm) continue;
    std::string_view rest = format::as_text(*comm);
    candidates.push_back({name, std::string(take_until(rest, '\n'))});
  }
  cli::print_candidates(cli::last_element(place), candidates);
}

// The users whose processes run.
void print_users(const cli::ValuePlace& place) {
  std::vector<Candidate> candidates;
  for (const auto& [user, processes] : users_of_processes())
    candidates.push_back({user_text(user), cli::counted(processes, "process")});
  cli::print_candidates(place, candidates);
}

// Paths of cgroups, relative to the mount point; what was typed may begin with a slash or with the mount
// point.
void print_cgroups(const cli::ValuePlace& whole, const std::string& mount) {
  cli::ValuePlace place = cli::last_element(whole);
  if (place.text.starts_with(mount + "/"))
    place = place_at(place, mount.size() + 1);
  else if (place.text.starts_with('/'))
    place = place_at(place, 1);
  std::vector<std::string> names = all_cgroups(mount);
  for (std::string& name : names) name.erase(0, 1);
  print_names(place, names);
}

// Values of options that name cgroups. False: it is another option.
bool print_names_of_cgroups(const cli::ValuePlace& place) {
  const bool is_container = place.option == "--container", is_pod = place.option == "--pod";
  if (!is_container && !is_pod && !place.is_of("--cgroup") && place.option != "--for-each-cgroup")
    return false;
  const auto mount = mounted_cgroups();
  if (!mount) return true;
  if (is_container)
    print_names(place, containers_below(*mount));
  else if (is_pod)
    print_names(place, pods_below(*mount));
  else
    print_cgroups(place, *mount);
  return true;
}

// Fields of the last tracepoint of -e, for --filter.
void print_filter_names(const cli::ValuePlace& place) {
  const auto event = std::ranges::find_if(
      place.given.rbegin(), place.given.rend(),
      [](const std::pair<std::string, std::string>& one) { return one.first == "-e,--event"; });
  if (event == place.given.rend()) return;
  const std::string& text = event->second;
  const std::string last = text.substr(last_event_of(text).start);
  const std::size_t colon = last.find(':');
  if (colon == kNone) return;
  const auto tracefs = Tracefs::find();
  if (!tracefs) return;
  const auto found = tracefs->matching(last.substr(0, colon), last.substr(colon + 1));
  if (!found) return;
  const auto described = tracefs->formats_of({found->data(), 1});
  if (!described || described->formats.empty()) return;
  std::vector<std::string> names;
  for (const std::string& field : fields_in(described->formats.front().text))
    names.push_back(name_of_field(field));
  print_names(cli::last_element(place, " !()&|=<>~"), names);
}

}  // namespace

LastEvent last_event_of(std::string_view text) {
  LastEvent out;
  while (true) {
    out.start = std::min(text.find_first_not_of('{', out.start), text.size());
    const std::string_view rest = text.substr(out.start);
    const std::size_t terms = terms_of(rest);
    const std::size_t end = terms == kNone ? 0 : rest.find('/', terms);
    if (end == kNone) {
      out.terms = out.start + terms;
      return out;
    }
    const std::size_t comma = rest.find(',', end);
    if (comma == kNone) return out;
    out.start += comma + 1;
  }
}

void print_events(const cli::ValuePlace& whole) {
  const LastEvent last = last_event_of(whole.text);
  if (last.terms) {
    const std::string name = whole.text.substr(last.start, *last.terms - 1 - last.start);
    return print_terms(place_at(whole, *last.terms), name);
  }
  const cli::ValuePlace place = place_at(whole, last.start);
  if (starts_with_any(place.text, kUserProbes)) return print_user_probes(place);
  if (starts_with_any(place.text, kKernelProbes)) return print_kernel_probes(place);
  if (place.text.starts_with('.') || place.text.starts_with('/') || place.text.starts_with('~'))
    return cli::print_files(place, cli::Offer::Files);
  if (place.text.find(':') != kNone) return print_tracepoints(place);
  print_first_words(place);
}

bool complete_recording(const cli::ValuePlace& place) {
  const std::vector<cli::Choices> choices{
      {"--call-graph", {"fp", "ehframe", "dwarf", "lbr", "no"}},
      {"--branch-filter",
       {"any", "any_call", "any_ret", "ind_call", "ind_jmp", "call", "cond", "in_tx", "no_tx", "abort_tx",
        "stack", "save_type", "priv", "u", "k", "hv"}},
      {"--clockid", {"monotonic", "monotonic_raw", "boottime", "realtime", "tai"}}};
  if (cli::print_choices(place, choices)) return true;
  if (place.value == "EVENT" && place.option != "--pfm-events") {
    print_events(place);
  } else if (place.value.starts_with("PID") || place.value.starts_with("TID")) {
    print_processes(place);
  } else if (place.is_of("--uid")) {
    print_users(place);
  } else if (place.option == "--filter") {
    print_filter_names(place);
  } else {
    return print_names_of_cgroups(place);
  }
  return true;
}

}  // namespace tacho::record
