#include "record/listing.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string_view>
#include <utility>

#include "cli/nearest.h"
#include "cli/option_rows.h"
#include "format/perf_abi.h"
#include "format/printable.h"
#include "record/events/event_names.h"
#include "record/events/pmu.h"
#include "record/events/tracepoint.h"
#include "record/host/pfm_events.h"
#include "record/json_line.h"
#include "record/kernel/perf_event.h"

namespace tacho::record {
namespace {

namespace abi = format::abi;

struct Line {
  std::string name, alias;
  std::string kind;
  std::vector<std::string> details;  // with -v
};

constexpr const char* kTracepointKind = "Tracepoint event";

// The words of perf list. Each chooses the lines whose kind has `kind` in it.
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
  if (pattern.find_first_of("*?[") == std::string::npos) return name.find(pattern) != std::string::npos;
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// Whether the kernel has it here: what it says to this process, which may be watched by everybody.
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
    const auto pmu = pmus.read(name);
    if (!pmu) continue;
    for (const PmuEvent& event : pmu->events)
      lines.push_back({fmt::format("{}/{}/", name, event.name), "", "Kernel PMU event", {event.terms}});
    // Those of probes have words of their own.
    if (pmu->fields.empty() || name == "uprobe" || name == "kprobe") continue;
    Line raw{fmt::format("{}/.../", name), "", "Kernel PMU by its fields", {}};
    for (const PmuField& field : pmu->fields)
      raw.details.push_back(fmt::format("{}=0..{:#x}", field.name, largest_value(field)));
    lines.push_back(std::move(raw));
  }
}

void add_forms(std::vector<Line>& lines, const Pmus& pmus) {
  lines.push_back({"rNNN", "", "Raw number of a counter, hexadecimal", {}});
  lines.push_back({"mem:ADDRESS[/LENGTH][:rwx]", "", "Hardware breakpoint", {}});
  if (pmus.read("uprobe")) {
    lines.push_back({"uprobe:FILE:FUNCTION[+OFFSET]", "", "Probe of a program or library", {}});
    lines.push_back({"uretprobe:FILE:FUNCTION", "", "Probe of a return", {}});
    lines.push_back({"usdt:FILE:PROVIDER:NAME", "", "Marker in a program or library", {}});
  }
  if (pmus.read("kprobe")) {
    lines.push_back({"kprobe:FUNCTION[+OFFSET]", "", "Probe of the kernel", {}});
    lines.push_back({"kretprobe:FUNCTION", "", "Probe of a return in the kernel", {}});
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
      const auto described = tracefs->describe({&tracepoint, 1});
      if (described && !described->formats.empty()) line.details = fields_in(described->formats.front().text);
    }
    lines.push_back(std::move(line));
  }
  return Done{};
}

// Makers' names, as far as libpfm4 is installed: of the processors here if their counters can be opened, and
// of all that it knows when one is asked for ("skl::*").
void add_makers_names(std::vector<Line>& lines, const std::string& pattern) {
  const bool is_asked_for = pattern.find("::") != std::string::npos;
  const auto cycles = find_named_event("cycles");
  if (!is_asked_for && !(cycles && can_be_opened(*cycles))) return;
  const auto library = PfmLibrary::open();
  if (!library) return;
  library->each_event(is_asked_for ? PfmLibrary::Which::All : PfmLibrary::Which::Here,
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
      "Lists the events that tacho record can record here: counters and caches of the processor where there "
      "are "
      "some (by their makers' names too, where libpfm4 is installed), software events, those of the kernel's "
      "PMUs, and tracepoints; with the word bpf the BPF "
      "programs "
      "that are loaded now, whoever loaded them: where they are attached, who holds them and what they cost; "
      "with the word recorders the tools that "
      "tacho record -e NAME carries: what each tells, and the names that other tools have for it. "
      "With uprobe:FILE:, usdt:FILE: or kprobe: before it, the functions and markers that probes can be put "
      "on. "
      "A GLOB ('sched:*') or a part of a "
      "name "
      "chooses among them, and hw, sw, cache, pmu, pfm or tracepoint before it those of these kinds, as in "
      "perf list.";
  line.options.push_back(cli::flag(
      "-v,--verbose",
      "Also the fields of tracepoints and PMUs, and of some functions the arguments that a probe can read",
      options.fields));
  line.options.push_back(
      {"--cost", cli::Takes::Optional, "SECONDS",
       "With bpf: measure for so long (1 to 60; default: 1) what the programs cost. The kernel's statistics "
       "are on for that time, which costs each run of a program some 20 ns",
       [&options](std::string_view text) -> Result<> {
         const auto seconds =
             text.empty() ? Result<std::uint64_t>(1) : cli::parse_number("--cost", text, 1, 60);
         if (!seconds) return seconds.error();
         options.cost_seconds = *seconds;
         return Done{};
       }});
  line.options.push_back(cli::flag(
      "--json",
      "One JSON object a line: name and kind of events, functions and markers (with -v their fields), "
      "name, tells and preset of recorders, all that is known of BPF programs",
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
    if (words.size() > 1) return use_error("one pattern at a time: " + words[1]);
    options.pattern = words.front();
    return Done{};
  };
  line.epilog =
      "Examples:\n"
      "  tacho list\n"
      "  tacho list sw\n"
      "  tacho list 'syscalls:sys_enter_open*' -v\n"
      "  tacho list recorders\n"
      "  tacho list 'uprobe:/bin/bash:read*'     functions of a program; with -v what they are called with\n"
      "  tacho list bpf --cost=5                 runs a second, time of each, share of a CPU\n"
      "\n"
      "Exit status: 0, 1 for a wrong command line or when nothing matches, 2 when tracefs cannot be read.";
  const auto outcome = cli::parse(line, arguments);
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
  add_makers_names(lines, options.pattern);
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
    out += fmt::format("  {:<50} [{}]\n", format::printable(names), line.kind);
    if (!options.fields) continue;
    for (const std::string& detail : line.details)
      out += fmt::format("      {}\n", format::printable(detail));
  }
  if (!out.empty()) return out;
  if (!tracepoints && is_of(options.kinds, {"", "", kTracepointKind, {}})) return tracepoints.error();
  if (options.pattern.empty() && !options.kinds.empty())
    return use_error(
        fmt::format("no event of the kind '{}' can be recorded here", fmt::join(options.kinds, "', '")));
  return nothing_matches(lines, options.pattern);
}

}  // namespace tacho::record
