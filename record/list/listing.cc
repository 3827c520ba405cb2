#include "record/list/listing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <utility>

#include "bpf/object/kernel_btf.h"
#include "bpf/user_object.h"
#include "cli/completion.h"
#include "cli/nearest.h"
#include "cli/option_rows.h"
#include "cli/text_table.h"
#include "format/base/file.h"
#include "format/base/printable.h"
#include "format/records/perf_abi.h"
#include "record/events/event_names.h"
#include "record/events/probe_arguments.h"
#include "record/events/recorders.h"
#include "record/events/tracepoint.h"
#include "record/host/answers.h"
#include "record/host/event_candidates.h"
#include "record/host/pfm_events.h"
#include "record/host/probe_offsets.h"
#include "record/host/report_program.h"
#include "record/host/running_kernel.h"
#include "record/kernel/perf_event.h"
#include "record/messages.h"
#include "record/objects/followed_functions.h"
#include "record/objects/opened_objects.h"
#include "record/parse_text.h"

namespace tacho::record {

std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char letter : format::printable_json(text)) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter;
  }
  return out + '"';
}

namespace {

namespace abi = format::abi;
using format::printable;

class JsonLine {
 public:
  void text(std::string_view name, std::string_view value) { member(name, json_text(value)); }
  void texts(std::string_view name, const std::vector<std::string>& values) {
    std::string list = "[";
    for (const std::string& value : values) list.append(list.size() > 1 ? "," : "").append(json_text(value));
    member(name, list + "]");
  }
  void number(std::string_view name, std::uint64_t value) { member(name, std::to_string(value)); }
  // The object and a line feed.
  std::string finished() const { return text_ + "}\n"; }

 private:
  void member(std::string_view name, std::string_view value) {
    if (text_.size() > 1) text_ += ',';
    text_.append(json_text(name)).append(":").append(value);
  }
  std::string text_ = "{";
};

struct Line {
  std::string name, alias;
  std::string kind;
  std::vector<std::string> details;  // with -v
};

constexpr const char* kTracepointKind = "Tracepoint event";

// The words of perf list. Each one selects the lines whose kind contains `kind`.
struct KindWord {
  std::string_view word, also, kind;
};
constexpr KindWord kKindWords[] = {
    {"hw", "hardware", "Hardware event"},
    {"sw", "software", "Software event"},
    {"cache", "hwcache", "cache event"},
    {"tracepoint", "tracepoints", kTracepointKind},
    {"pmu", "", "Kernel PMU"},
    {"pfm", "", "libpfm4"},
};

const KindWord* kind_word(std::string_view word) {
  const auto row = std::ranges::find_if(kKindWords, [&](const KindWord& one) {
    return one.word == word || (!word.empty() && one.also == word);
  });
  return row == std::end(kKindWords) ? nullptr : row;
}

bool is_of(const std::vector<std::string>& kinds, const Line& line) {
  return kinds.empty() || std::ranges::any_of(kinds, [&line](const std::string& kind) {
           return line.kind.find(kind_word(kind)->kind) != std::string::npos;
         });
}

bool matches(const std::string& pattern, const std::string& name) {
  if (pattern.empty()) return true;
  if (!is_glob(pattern)) return name.find(pattern) != std::string::npos;
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// Whether the kernel supports the event: opens it for this process, which needs the fewest rights.
bool can_be_opened(const NamedEvent& named) {
  PlannedEvent event;
  event.attr.type = named.type;
  event.attr.config = named.config;
  event.attr.flags = abi::kDisabled | abi::kExcludeKernel | abi::kExcludeHv;
  const auto open = open_event(event, 0, -1);
  return open ||
         (open.error().code != ENOENT && open.error().code != EOPNOTSUPP && open.error().code != ENODEV);
}

void add_named(std::vector<Line>& lines) {
  for (const ListedEvent& event : named_events()) {
    const auto named = find_named_event(event.name);
    if (named && can_be_opened(*named))
      lines.push_back({event.name, event.alias, std::string(event.kind), {}});
  }
}

void add_pmus(std::vector<Line>& lines, const Pmus& pmus) {
  for (const std::string& name : pmus.names()) {
    const auto pmu = pmus.read_pmu(name);
    if (!pmu) continue;
    for (const PmuEvent& event : pmu->events)
      lines.push_back({fmt::format("{}/{}/", name, event.name), "", "Kernel PMU event", {event.terms}});
    // uprobe and kprobe: add_forms() has their syntax.
    if (pmu->fields.empty() || name == "uprobe" || name == "kprobe") continue;
    Line raw{fmt::format("{}/.../", name), "", "Kernel PMU by its fields", {}};
    for (const PmuField& field : pmu->fields)
      raw.details.push_back(fmt::format("{}=0..{:#x}", field.name, largest_value(field)));
    lines.push_back(std::move(raw));
  }
}

void add_forms(std::vector<Line>& lines, const Pmus& pmus) {
  lines.push_back({"rNNN", "", "Raw event number, hexadecimal", {}});
  lines.push_back({"mem:ADDRESS[/LENGTH][:rwx]", "", "Hardware breakpoint", {}});
  if (pmus.read_pmu("uprobe")) {
    lines.push_back({"uprobe:FILE:FUNCTION[+OFFSET]", "", "Probe at a user function", {}});
    lines.push_back({"uretprobe:FILE:FUNCTION", "", "Probe at the return of a user function", {}});
    lines.push_back({"usdt:FILE:PROVIDER:NAME", "", "USDT marker", {}});
  }
  if (pmus.read_pmu("kprobe")) {
    lines.push_back({"kprobe:FUNCTION[+OFFSET]", "", "Probe at a kernel function", {}});
    lines.push_back({"kretprobe:FUNCTION", "", "Probe at the return of a kernel function", {}});
  }
}

Result<> add_tracepoints(std::vector<Line>& lines, const ListOptions& options) {
  const auto tracefs = Tracefs::find();
  if (!tracefs) return tracefs.error();
  auto tracepoints = tracefs->matching("*", "*");
  if (!tracepoints) return std::move(tracepoints.error());
  for (const Tracepoint& tracepoint : *tracepoints) {
    Line line{tracepoint.system + ":" + tracepoint.name, "", kTracepointKind, {}};
    if (options.fields && matches(options.pattern, line.name)) {
      const auto described = tracefs->formats_of({&tracepoint, 1});
      if (described && !described->formats.empty()) line.details = fields_in(described->formats.front().text);
    }
    lines.push_back(std::move(line));
  }
  return Done{};
}

// Event names of libpfm4, if it is installed: of this host's CPUs if their counters can be opened; if the
// pattern names a PMU ("skl::*"), of all that it has.
void add_pfm_names(std::vector<Line>& lines, const std::string& pattern) {
  const bool names_pmu = pattern.find("::") != std::string::npos;
  const auto cycles = find_named_event("cycles");
  if (!names_pmu && !(cycles && can_be_opened(*cycles))) return;
  const auto library = PfmLibrary::open();
  if (!library) return;
  library->each_event(names_pmu ? PfmLibrary::Which::All : PfmLibrary::Which::Here,
                      [&lines](const std::string& name, const std::string& description) {
                        lines.push_back({name, "", "libpfm4, --pfm-events", {description}});
                      });
}

std::string json_line(const Line& line, bool with_fields) {
  JsonLine json;
  json.text("name", line.name);
  if (!line.alias.empty()) json.text("alias", line.alias);
  json.text("kind", line.kind);
  if (with_fields) json.texts("fields", line.details);
  return json.finished();
}

Error nothing_matches(const std::vector<Line>& lines, const std::string& pattern) {
  std::vector<std::string> names;
  for (const Line& line : lines) names.push_back(line.name);
  return use_error(fmt::format("no event here matches '{}'{}", pattern, cli::suggestion(pattern, names)));
}

}  // namespace

Result<ListOptions> parse_list_options(const std::vector<std::string>& arguments) {
  ListOptions options;
  cli::CommandLine line;
  line.program = "tacho list";
  line.synopsis = "[hw] [sw] [cache] [pmu] [tracepoint] [bpf | recorders] [GLOB] [-v]";
  line.description =
      "Lists the events that can be recorded here: hardware and cache counters (with libpfm4 also by the CPU "
      "vendor's names), software events, PMU events and tracepoints. A GLOB ('sched:*') or a part of a name "
      "selects events, and hw, sw, cache, pmu, pfm or tracepoint their kinds, as in perf list. "
      "uprobe:FILE:GLOB, kprobe:GLOB and usdt:FILE:GLOB list functions and USDT markers for probes. "
      "tacho list recorders lists the ready-made BPF tools of tacho record -e NAME. tacho list bpf lists the "
      "loaded BPF programs of all processes: where they are attached, which processes hold them, and their "
      "run times.";
  line.options.push_back(cli::flag(
      "-v,--verbose", "Also the fields of tracepoints and PMUs, and the arguments of up to 20 functions",
      options.fields));
  line.options.push_back(
      {"--cost", cli::Takes::Optional, "SECONDS",
       "With bpf: measure the programs' run times for SECONDS (1 to 60; default: 1). Meanwhile the kernel's "
       "statistics are enabled, which adds some 20 ns to each run of a program",
       [&options](std::string_view text) {
         return store(options.cost_seconds, cli::parse_number("--cost", text.empty() ? "1" : text, 1, 60));
       }});
  line.options.push_back(cli::flag(
      "--json",
      "One JSON object for each line: name and kind of events, functions and markers (with -v their fields); "
      "name, tells (what it shows) and preset of recorders; all details of BPF programs",
      options.json));
  line.words = [&options](std::vector<std::string> words) -> Result<> {
    options.programs = words.front() == "bpf";
    options.recorders = words.front() == "recorders";
    if (options.programs || options.recorders) words.erase(words.begin());
    while (!options.programs && !options.recorders && !words.empty() && kind_word(words.front()) != nullptr) {
      options.kinds.push_back(words.front());
      words.erase(words.begin());
    }
    if (words.empty()) return Done{};
    if (words.size() > 1) return use_error("more than one pattern: " + words[1]);
    options.pattern = words.front();
    return Done{};
  };
  const auto complete = [](const cli::ValuePlace& place) {
    if (!place.option.empty()) return false;
    if (!place.words.empty() && place.words.front() == "recorders") {
      std::vector<cli::Candidate> names;
      for (const RecorderRow& row : recorders())
        names.push_back({std::string(row.name), std::string(row.summary)});
      cli::print_candidates(place, names);
      return true;
    }
    if (place.words.empty()) {
      std::vector<cli::Candidate> kinds{{"recorders", "ready-made recorders"},
                                        {"bpf", "loaded BPF programs"}};
      for (const KindWord& row : kKindWords) kinds.push_back({std::string(row.word), std::string(row.kind)});
      cli::print_candidates(place, kinds);
    }
    print_events(place);
    return true;
  };
  line.epilog =
      "Examples:\n"
      "  tacho list\n"
      "  tacho list sw\n"
      "  tacho list 'syscalls:sys_enter_open*' -v\n"
      "  tacho list recorders\n"
      "  tacho list 'uprobe:/bin/bash:read*'     functions of a program; with -v their arguments\n"
      "  tacho list bpf --cost=5                 runs per second, time of a run, share of a CPU\n"
      "\n"
      "Exit status: 0, 1 for a wrong command line or when nothing matches, 2 when tracefs cannot be read.";
  const auto outcome = cli::parse_or_complete(line, arguments, complete);
  if (!outcome) return outcome.error();
  if (*outcome == cli::Parsed::Run && options.cost_seconds && !options.programs)
    return use_error("--cost is for BPF programs: tacho list bpf --cost");
  options.outcome = *outcome;
  return options;
}

Result<std::string> list_events(const ListOptions& options) {
  const Pmus pmus;
  std::vector<Line> lines;
  add_named(lines);
  add_pmus(lines, pmus);
  add_forms(lines, pmus);
  add_pfm_names(lines, options.pattern);
  const auto tracepoints = add_tracepoints(lines, options);
  std::erase_if(lines, [&options](const Line& line) { return !is_of(options.kinds, line); });
  std::string out;
  for (const Line& line : lines) {
    if (!matches(options.pattern, line.name) && (line.alias.empty() || !matches(options.pattern, line.alias)))
      continue;
    if (options.json) {
      out += json_line(line, options.fields);
      continue;
    }
    const std::string names = line.alias.empty() ? line.name : line.name + " OR " + line.alias;
    out += fmt::format("  {:<50} [{}]\n", printable(names), line.kind);
    if (!options.fields) continue;
    for (const std::string& detail : line.details) out += fmt::format("      {}\n", printable(detail));
  }
  if (!out.empty()) return out;
  if (!tracepoints && is_of(options.kinds, {"", "", kTracepointKind, {}})) return tracepoints.error();
  if (options.pattern.empty() && !options.kinds.empty())
    return use_error(
        fmt::format("no event of the kind '{}' can be recorded here", fmt::join(options.kinds, "', '")));
  return nothing_matches(lines, options.pattern);
}

namespace {

// The arguments of more functions are not listed: debugging information is read again for each function.
constexpr std::size_t kMostExplained = 20;

// A function or USDT marker.
struct ProbeTarget {
  std::string name, details;
  std::string source_name = {};  // the demangled name; empty: the same
};

const ProbeRow* row_of(std::string_view pattern) {
  const std::string_view word = pattern.substr(0, pattern.find(':'));
  const auto row = std::ranges::find(kProbes, word, &ProbeRow::word);
  return row == std::end(kProbes) || word.size() == pattern.size() ? nullptr : &*row;
}

// Keeps the targets that match, sorted. A pattern that is exactly a name matches only that one.
void choose(std::vector<ProbeTarget>& targets, const std::string& pattern) {
  std::ranges::sort(targets, {}, &ProbeTarget::name);
  const auto is_same = [](const ProbeTarget& a, const ProbeTarget& b) { return a.name == b.name; };
  targets.erase(std::unique(targets.begin(), targets.end(), is_same), targets.end());
  const auto exact = std::ranges::find(targets, pattern, &ProbeTarget::name);
  if (exact != targets.end()) {
    targets = {*exact};
    return;
  }
  std::erase_if(targets, [&](const ProbeTarget& one) {
    return !matches(pattern, one.name) && (one.source_name.empty() || !matches(pattern, one.source_name));
  });
}

Error nothing_matches(const std::string& where, const std::string& pattern,
                      const std::vector<std::string>& names) {
  return use_error(names.empty() ? where + " has none"
                                 : fmt::format("{} has none that matches '{}'{}", where, pattern,
                                               cli::suggestion(pattern, names)));
}

std::string signature_of(const std::string& function) {
  const auto arguments = bpf::kernel_function_arguments(function);
  if (!arguments) return arguments.error().what;
  std::string text;
  for (const bpf::FunctionArgument& one : *arguments) text += (text.empty() ? "" : ", ") + one.name;
  return text.empty() ? "no arguments" : text;
}

// The arguments of a function in words, or the error that record prints for an unknown name.
std::string signature_of(const std::string& path, format::Bytes file, const std::string& function) {
  const auto offset = function_offset(file, function);
  if (!offset) return offset.error().what;
  const std::vector<ArgumentRequest> all{{"what", "?", ""}};
  const auto found = user_arguments({path, *offset, function}, all, {});
  return found ? std::string() : found.error().what;
}

Result<std::vector<ProbeTarget>> kernel_targets() {
  const auto kallsyms = format::read_file("/proc/kallsyms");
  if (!kallsyms) return kallsyms.error();
  std::vector<ProbeTarget> targets;
  for (std::string& name : kernel_function_names(format::as_text(*kallsyms)))
    targets.push_back({std::move(name), {}});
  return targets;
}

Result<std::vector<ProbeTarget>> marker_targets(format::Bytes file) {
  const auto markers = usdt_markers(file);
  if (!markers) return Error{markers.error()};
  std::vector<ProbeTarget> targets;
  for (const UsdtMarker& marker : *markers) {
    const std::size_t count = marker_arguments(marker.arguments).size();
    targets.push_back(
        {marker.provider + ":" + marker.name,
         count == 0 ? "no arguments" : fmt::format("arg1 to arg{}: {}", count, marker.arguments)});
  }
  return targets;
}

Result<std::vector<ProbeTarget>> function_targets(format::Bytes file) {
  const auto names = function_names(file);
  if (!names) return names.error();
  std::vector<ProbeTarget> targets;
  for (const std::string& name : *names) targets.push_back({name, {}, source_name(name).value_or("")});
  return targets;
}

void explain(std::vector<ProbeTarget>& targets, const ProbeRow& row, const std::string& path,
             format::Bytes file) {
  if (row.at_return || targets.size() > kMostExplained) return;
  for (ProbeTarget& one : targets) {
    if (row.kind == ProbeKind::Kernel) one.details = signature_of(one.name);
    if (row.kind == ProbeKind::User) one.details = signature_of(path, file, one.name);
  }
}

}  // namespace

bool is_probe_pattern(std::string_view pattern) { return row_of(pattern) != nullptr; }

Result<std::string> list_probes(const ListOptions& options) {
  if (!options.kinds.empty())
    return use_error(fmt::format("'{}' lists functions and markers for probes: leave out '{}'",
                                 options.pattern, options.kinds.front()));
  const ProbeRow& row = *row_of(options.pattern);
  std::string rest = options.pattern.substr(row.word.size() + 1), path;
  std::vector<std::byte> file;
  if (row.kind != ProbeKind::Kernel) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    path = rest.substr(0, colon);
    rest.erase(0, std::min(colon + 1, rest.size()));
    if (auto done = check_file_answers(*ForeignReader::start(), path); !done) return std::move(done.error());
    auto bytes = format::read_file(path);
    if (!bytes) return use_error(bytes.error().what);
    file = std::move(*bytes);
  }
  auto targets = row.kind == ProbeKind::Kernel   ? kernel_targets()
                 : row.kind == ProbeKind::Marker ? marker_targets(file)
                                                 : function_targets(file);
  if (!targets && row.kind == ProbeKind::Kernel) return std::move(targets.error());
  if (!targets) return std::move(targets.error()).in(path);
  std::vector<std::string> names;
  for (const ProbeTarget& one : *targets) names.push_back(one.name);
  choose(*targets, rest);
  if (targets->empty())
    return nothing_matches(row.kind == ProbeKind::Kernel ? "the kernel" : path + ": it", rest, names);
  if (options.fields) explain(*targets, row, path, file);
  std::string out;
  const std::string prefix = std::string(row.word) + ":" + (path.empty() ? "" : path + ":");
  const std::string_view kind = row.kind == ProbeKind::Marker ? "Marker"
                                : row.at_return               ? "Return of a function"
                                                              : "Function";
  for (const ProbeTarget& one : *targets) {
    if (options.json) {
      JsonLine json;
      json.text("name", prefix + one.name);
      json.text("kind", kind);
      if (!one.source_name.empty()) json.text("source_name", one.source_name);
      if (options.fields && !one.details.empty()) json.text("arguments", one.details);
      out += json.finished();
      continue;
    }
    out += fmt::format("  {:<50} [{}]\n", printable(prefix + one.name), kind);
    if (!one.source_name.empty()) out += fmt::format("      {}\n", printable(one.source_name));
    if (options.fields && !one.details.empty()) out += fmt::format("      {}\n", printable(one.details));
  }
  return out;
}

namespace {

bpf::Cost cost_of(const Costs& costs, const bpf::ListedProgram& program) {
  const auto found = costs.find(program.id);
  return found == costs.end() ? bpf::Cost{} : found->second;
}

// Nanoseconds of one run; "-" without runs.
std::string time_of_one(std::uint64_t runs, std::uint64_t nanoseconds) {
  return runs == 0 ? "-" : std::to_string(nanoseconds / runs);
}

}  // namespace

std::string programs_in_lines(const std::vector<bpf::ListedProgram>& programs,
                              const std::optional<Costs>& costs, std::uint64_t seconds, bool with_details,
                              std::size_t room) {
  using Kind = cli::TableColumn::Kind;
  std::vector<cli::TableColumn> columns = {{"id", Kind::Number, 6},
                                           {"type", Kind::Word, 16, 2},
                                           {"tag", Kind::Spare, 16},
                                           {"name", Kind::Name, 24}};
  if (costs)
    columns.insert(
        columns.end(),
        {{"runs/s", Kind::Number, 10}, {"ns/run", Kind::Number, 8}, {"of a CPU", Kind::Number, 8}});
  else
    columns.insert(columns.end(), {{"runs", Kind::Number, 12}, {"ns/run", Kind::Number, 8}});
  columns.push_back({"where", Kind::Name, 0, 2});
  const std::string indent(8, ' ');
  std::vector<std::vector<std::string>> rows;
  for (const bpf::ListedProgram& program : programs) {
    auto& row = rows.emplace_back(std::vector<std::string>{std::to_string(program.id), program.type,
                                                           program.tag, printable(program.name)});
    if (costs) {
      const bpf::Cost cost = cost_of(*costs, program);
      const auto interval = static_cast<double>(seconds);
      row.push_back(fmt::format("{:.0f}", static_cast<double>(cost.runs) / interval));
      row.push_back(time_of_one(cost.runs, cost.nanoseconds));
      row.push_back(fmt::format("{:.2f} %", static_cast<double>(cost.nanoseconds) / 1e9 / interval * 100));
    } else {
      row.push_back(program.runs == 0 ? "-" : std::to_string(program.runs));
      row.push_back(time_of_one(program.runs, program.nanoseconds));
    }
    row.push_back(program.attachments.empty() ? "-" : printable(program.attachments.front()));
    for (std::size_t i = 1; i < program.attachments.size(); ++i)
      rows.push_back({fmt::format("{}also at: {}", indent, printable(program.attachments[i]))});
    if (!with_details) continue;
    for (const std::string& holder : program.holders)
      rows.push_back({fmt::format("{}held by: {}", indent, printable(holder))});
    rows.push_back(
        {fmt::format("{}loaded by user {}; {} bytes, {} of machine code; {} runs skipped (recursion)", indent,
                     program.loaded_by, program.translated_bytes, program.machine_bytes, program.skipped)});
  }
  return cli::text_table(columns, std::move(rows), room);
}

std::string programs_in_json(const std::vector<bpf::ListedProgram>& programs,
                             const std::optional<Costs>& costs, std::uint64_t seconds) {
  std::string out;
  for (const bpf::ListedProgram& program : programs) {
    JsonLine json;
    json.number("id", program.id);
    json.text("type", program.type);
    json.text("name", program.name);
    json.text("tag", program.tag);
    json.number("loaded_by", program.loaded_by);
    json.number("translated_bytes", program.translated_bytes);
    json.number("machine_bytes", program.machine_bytes);
    json.number("runs", program.runs);
    json.number("run_ns", program.nanoseconds);
    json.number("skipped", program.skipped);
    if (costs) {
      const bpf::Cost cost = cost_of(*costs, program);
      json.number("measured_seconds", seconds);
      json.number("measured_runs", cost.runs);
      json.number("measured_ns", cost.nanoseconds);
    }
    json.texts("places", program.attachments);
    json.texts("holders", program.holders);
    out += json.finished();
  }
  return out;
}

Result<std::string> list_bpf_programs(const ListOptions& options) {
  std::optional<Costs> costs;
  if (options.cost_seconds) {
    auto measured = bpf::measure_programs(std::chrono::seconds(*options.cost_seconds));
    if (!measured) return std::move(measured.error());
    costs = std::move(*measured);
  }
  auto programs = bpf::list_programs();
  if (!programs) return std::move(programs.error());
  std::erase_if(*programs,
                [&](const bpf::ListedProgram& program) { return !matches(options.pattern, program.name); });
  if (programs->empty() && !options.pattern.empty())
    return use_error("no loaded BPF program matches '" + options.pattern + "'");
  const std::uint64_t seconds = options.cost_seconds.value_or(0);
  if (options.json) return programs_in_json(*programs, costs, seconds);
  if (programs->empty()) return std::string("no BPF program is loaded\n");
  return programs_in_lines(*programs, costs, seconds, options.fields,
                           options.fields ? 0 : cli::terminal_width());
}

namespace {

// Hooks of a recorder that attaches to functions by name: of programs, of the kernel (follow), or both
// (func).
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
                       each.optional ? " (if the kernel has it)" : "");
  }
  return out;
}

std::string fields_in_words(const format::PayloadSchema& schema) {
  std::vector<std::string> names;
  for (const format::PayloadField& field : schema.fields)
    if (field.role != "stack") names.push_back(field.name);
  return printable(fmt::format("{}", fmt::join(names, ", ")));
}

// The names that --filter can use for the object's events.
std::string filter_names(const bpf::UserObject& object) {
  const auto& channels = object.channels();
  const auto asks = [&](const bpf::Channel& each) { return object.supports_filter_of(each); };
  const auto is_sent_at_once = [&](const bpf::Channel& each) {
    return asks(each) && each.kind == bpf::ChannelKind::PerfEventArray;
  };
  const bool any = std::ranges::any_of(channels, asks);
  const bool of_thread = object.supports_filter() || (any && std::ranges::all_of(channels, is_sent_at_once));
  if (any && of_thread) return "pid, tid, uid, gid, cpu, comm, cgroup and members of the event";
  if (any) return "members of the event";
  return of_thread ? "pid, tid, uid, gid, cpu, comm and cgroup" : "";
}

// Help of `profile`, which is not a BPF object: its options are terms of the event cpu-clock.
std::string clock_help(const RecorderRow& row) {
  return fmt::format(
      "{}: {}\n\nOptions, as {}/NAME=VALUE,.../:\n"
      "  {:<24} samples per second of each busy CPU (default: 99)\n"
      "  {:<24} fp, ehframe, dwarf or no (default: as -g)\n"
      "  {:<24} most frames of a stack\n"
      "\nIt is the event cpu-clock, with --filter and the modifiers u (user mode only) and k (kernel mode "
      "only): profile/hz=99/u.\n"
      "\nThen: {}\n",
      row.name, row.summary, row.name, "hz", "call-graph", "max-stack", row.view);
}

// Help of a recorder whose hook is an option (a probe or tracepoint).
std::string probe_help(const RecorderRow& row) {
  std::string out =
      fmt::format("{}: {}\n\nOptions, as {}/NAME=VALUE,.../:\n", row.name, row.summary, row.name);
  for (const ProbeRecorderOption& option : probe_recorder_options(row.name))
    out += fmt::format("  {:<24} {}\n", option.name, option.help);
  return out + fmt::format("\nHooks:\n  the probe or tracepoint of the options\n\nThen: {}\n", row.view);
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
  if (const std::string names = filter_names(*object); !names.empty())
    out += fmt::format("\n--filter can use {} (docs/recording.md).\n", names);
  if (row != nullptr) out += fmt::format("\nThen: {}\n", row->view);
  return out;
}

std::optional<int> answer_help_request(std::span<const EventRequest> events, std::string_view command) {
  for (const EventRequest& request : events) {
    if (!request.asks_for_help) continue;
    auto text = recorder_help(request);
    if (!text) return report_failure(text.error(), command);
    text->pop_back();
    return print_line(format::printable_lines(*text), command);
  }
  return std::nullopt;
}

}  // namespace tacho::record
