#include "record/stat/stat_options.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "cli/absent_options.h"
#include "cli/completion.h"
#include "cli/option_rows.h"
#include "record/host/event_candidates.h"
#include "record/options/sampling_options.h"
#include "record/parse_text.h"

namespace tacho::record {
namespace {

using cli::Takes;
using std::chrono::milliseconds;

constexpr std::uint64_t kLongest = std::uint64_t{1000} * 60 * 60 * 24 * 365;  // ms
constexpr std::uint64_t kMostRuns = 1'000'000;

// Options of perf stat that are refused, with what to use instead.
constexpr cli::AbsentOption kNotCounted[] = {
    {"-M,--metrics", Takes::Value, "name the events of the metric with -e"},
    {"--metric-only", Takes::Nothing, "-j prints each metric as a number"},
    {"-T,--transaction", Takes::Nothing, "name the events with -e: tx-start, tx-commit, tx-abort"},
    {"--topdown", Takes::Nothing, "name the events with -e: topdown-retiring and the like"},
    {"--per-socket", Takes::Nothing, "-A prints a row for each CPU"},
    {"--per-die", Takes::Nothing, "-A prints a row for each CPU"},
    {"--per-core", Takes::Nothing, "-A prints a row for each CPU"},
    {"--per-node", Takes::Nothing, "-A prints a row for each CPU"},
    {"-b,--bpf-prog", Takes::Value, "tacho record -e bpfstat counts runs and times of BPF programs"},
    {"--control", Takes::Value, "tacho record --control enables and disables events"},
};

Result<> take_milliseconds(std::string_view option, std::string_view text, std::uint64_t least,
                           std::optional<milliseconds>& to) {
  const auto number = cli::parse_number(option, text, least, kLongest);
  if (!number) return number.error();
  to = milliseconds(*number);
  return Done{};
}

// What is gathered before it is checked as a whole.
struct Words {
  StatOptions options;
  TargetOptions target;
  bool counts_nothing = false, is_detailed = false, is_json = false, is_json_lines = false;
  bool has_rows_of_cpus = false, has_rows_of_threads = false;
  std::optional<std::string> separator;
};

std::vector<cli::Option> options_of_stat(Words& to) {
  StatOptions& options = to.options;
  TargetOptions& target = to.target;
  const auto cgroups = [](std::vector<std::string>& names) {
    return [&names](std::string_view text) -> Result<> {
      std::ranges::move(parse_cgroup_list(text), std::back_inserter(names));
      return Done{};
    };
  };
  std::vector<cli::Option> rows{
      {"-e,--event", Takes::Value, "EVENT",
       "The events to count, repeated or separated by commas, in the language of tacho record: cycles:u, "
       "SUBSYSTEM:TRACEPOINT (sched:*), kprobe:FUNCTION, uprobe:FILE:FUNCTION, {a,b}. Default: task-clock "
       "(with -a cpu-clock), context-switches, cpu-migrations, page-faults, cycles, instructions, branches, "
       "branch-misses",
       [&options](std::string_view text) { return add_events(options.events, text); }},
      cli::flag("-d,--detailed", "Also count loads and misses of the caches L1 and LLC", to.is_detailed),
      cli::flag("-n,--null", "Count nothing: print only the times", to.counts_nothing),
      cli::flag("-a,--all-cpus", "Count the whole system", target.all_cpus),
      {"-p,--pid", Takes::Value, "PID[,PID]", "Count these processes with all their threads",
       [&target](std::string_view text) -> Result<> {
         auto ids = parse_id_list(text);
         if (!ids) return std::move(ids.error()).in("-p");
         target.processes = std::move(*ids);
         return Done{};
       }},
      {"-t,--tid", Takes::Value, "TID[,TID]", "Count only these threads",
       [&target](std::string_view text) -> Result<> {
         auto ids = parse_id_list(text);
         if (!ids) return std::move(ids.error()).in("-t");
         target.threads = std::move(*ids);
         return Done{};
       }},
      {"-C,--cpu", Takes::Value, "CPUS", "Count these CPUs, as in 0-3,6",
       [&target](std::string_view text) -> Result<> {
         auto cpus = parse_cpu_list(text);
         if (!cpus) return std::move(cpus.error()).in("-C");
         target.cpus = std::move(*cpus);
         return Done{};
       }},
      {"-G,--cgroup", Takes::Value, "NAME[,NAME]",
       "Count in this cgroup and those below it (-a). One cgroup applies to all events, several to one event "
       "each",
       cgroups(target.cgroups)},
      {"--for-each-cgroup", Takes::Value, "NAME[,NAME]", "Count all events in each of these cgroups (-a)",
       cgroups(target.each_cgroup)},
      cli::flag("-i,--no-inherit", "Do not count children of the counted processes", target.no_inherit),
      cli::flag("-A,--no-aggr", "A row for each CPU (-a, -C)", to.has_rows_of_cpus),
      cli::flag("--per-thread", "A row for each thread (-p, -t)", to.has_rows_of_threads),
      {"-I,--interval-print", Takes::Value, "MS", "Print the counts of each interval of MS milliseconds",
       [&options](std::string_view text) { return take_milliseconds("-I", text, 1, options.interval); }},
      cli::number("--interval-count", "N", "End after N intervals", 1, kMostRuns, options.most_intervals),
      {"--timeout", Takes::Value, "MS", "End after MS milliseconds; COMMAND goes on",
       [&options](std::string_view text) {
         return take_milliseconds("--timeout", text, 1, options.duration);
       }},
      {"-D,--delay", Takes::Value, "MS", "Begin to count MS milliseconds after the start",
       [&options](std::string_view text) -> Result<> {
         std::optional<milliseconds> delay;
         auto done = take_milliseconds("-D", text, 0, delay);
         options.delay = delay.value_or(milliseconds(0));
         return done;
       }},
      cli::number("-r,--repeat", "N", "Run COMMAND N times, and print means and their standard errors", 1,
                  kMostRuns, options.runs),
      cli::flag("-S,--sync", "Call sync() before COMMAND, so that earlier writes do not count",
                options.syncs),
      {"-x,--field-separator", Takes::Value, "SEP", "Print as perf's CSV, with this separator",
       [&to](std::string_view text) -> Result<> {
         to.separator = text == "\\t" ? "\t" : std::string(text);
         return Done{};
       }},
      cli::flag(
          "--json",
          "Print one JSON object {command, elapsed_seconds, user_seconds, system_seconds, counts: [{event, "
          "count, unit, enabled_ns, running_ns}]}; with -I one in each line. `count` is null if the event "
          "was not counted",
          to.is_json),
      cli::flag("-j,--json-output", "Print as perf's JSON: an object for each count, one in each line",
                to.is_json_lines),
      cli::text("-o,--output", "FILE", "Print to FILE. Default: standard error", options.output),
      cli::flag("--append", "Append to the file of -o", options.appends),
      cli::flag("-B,--big-num", "Group digits: 1,234,567 (the default, except with -x)",
                options.groups_digits),
      cli::flag("--no-big-num", "Do not group digits", options.groups_digits, false),
      cli::flag("-c,--no-scale", "Do not scale counts of events that shared a counter", options.scales,
                false),
      cli::accepted("-v,--verbose", Takes::Nothing, ""),
      cli::accepted("--scale", Takes::Nothing, ""),
  };
  cli::add_absent_options(rows, kNotCounted);
  return rows;
}

constexpr const char* kStatEpilog = R"(Examples:
  tacho stat -- make                      counts of a command, of its threads and children
  tacho stat -e page-faults,sched:sched_switch -p 1234 -- sleep 5
  tacho stat -a -I 1000                   of the whole system, each second, until Ctrl-C
  tacho stat -r 10 -- ./program           means of ten runs, and their standard errors

A row has the count, its event, and a metric: CPUs that were used, events per second of CPU time, cycles per ns,
instructions per cycle. <not supported>: this machine has no counter for the event, as most virtual machines.
<not counted>: the event was never on a CPU. (24.91%): counters were shared; the event was counted in that part of
the time, and the count is scaled up.

Counts go to standard error, since COMMAND has standard output. Probes (kprobe:, uprobe:) count the threads that
exist at the start: the kernel does not inherit them; with -a they count all.

Exit status: that of COMMAND (128 + the signal that ended it); without one 0, 1 for a wrong command line, 2 when the
kernel refuses, 4 when the output could not be written.)";

Result<> choose_form(Words& words) {
  StatOptions& options = words.options;
  if (words.separator.has_value() + words.is_json + words.is_json_lines > 1)
    return use_error("-x, -j and --json exclude each other");
  if (words.separator && words.separator->empty()) return use_error("-x: the separator is empty");
  if (words.separator) options.separator = *words.separator;
  if (words.separator) options.form = StatForm::Csv;
  if (words.is_json_lines) options.form = StatForm::Lines;
  if (words.is_json) options.form = StatForm::Document;
  return Done{};
}

Result<> choose_rows(Words& words) {
  StatOptions& options = words.options;
  const Watch watch = options.target.watch;
  if (words.has_rows_of_cpus && words.has_rows_of_threads)
    return use_error("-A and --per-thread exclude each other");
  if (words.has_rows_of_cpus && watch != Watch::System)
    return use_error("-A: rows of CPUs need -a or -C: other targets are counted by thread, on any CPU");
  if (words.has_rows_of_threads && watch != Watch::Processes && watch != Watch::Threads)
    return use_error("--per-thread: rows of threads need -p or -t");
  if (words.has_rows_of_cpus) options.rows = StatRows::Cpus;
  if (words.has_rows_of_threads) options.rows = StatRows::Threads;
  return Done{};
}

Result<> choose_events(Words& words) {
  StatOptions& options = words.options;
  if (words.counts_nothing) {
    if (!options.events.empty()) return use_error("-n and -e exclude each other");
    return Done{};
  }
  if (options.events.empty()) {
    const std::string clock = options.target.watch == Watch::System ? "cpu-clock" : "task-clock";
    auto added = add_events(options.events, clock +
                                                ",context-switches,cpu-migrations,page-faults,cycles,"
                                                "instructions,branches,branch-misses");
    if (!added) return added;
  }
  if (words.is_detailed)
    if (auto added =
            add_events(options.events, "L1-dcache-loads,L1-dcache-load-misses,LLC-loads,LLC-load-misses");
        !added)
      return added;
  for (const EventRequest& event : options.events) {
    if (event.object() != nullptr || !event.catalogue_name.empty() || event.sum)
      return use_error(
          "-e " + event.text +
          ": tacho stat counts events of the kernel; tacho record -e records those of BPF programs "
          "and recorders");
  }
  return Done{};
}

Result<> check_words(Words& words) {
  StatOptions& options = words.options;
  if (options.runs > 1 && options.command.empty()) return use_error("-r: there is no COMMAND to repeat");
  if (options.runs > 1 && options.interval) return use_error("-r and -I exclude each other");
  if (options.runs > 1 && options.form == StatForm::Document)
    return use_error("-r: --json has one run; -j prints means");
  if (options.most_intervals != 0 && !options.interval) return use_error("--interval-count needs -I");
  if (options.appends && options.output.empty()) return use_error("--append needs -o");
  return Done{};
}

}  // namespace

Result<ParsedStat> parse_stat_options(const std::vector<std::string>& arguments) {
  Words words;
  cli::CommandLine line;
  line.program = "tacho stat";
  line.synopsis = "[-e EVENT]... [-a | -p PID[,PID] | -t TID[,TID] | -C CPUS] [OPTION]... [COMMAND]";
  line.description =
      "Counts events, as perf stat does: nothing is sampled or recorded. With a COMMAND it counts while the "
      "command runs, and only the command with its threads and children, unless -a, -C, -p or -t say "
      "otherwise; without one it counts until it is interrupted or the processes have ended.";
  line.options = options_of_stat(words);
  line.stop_at_first_word = true;
  line.words = [&words](std::vector<std::string> command) -> Result<> {
    words.options.command = std::move(command);
    return Done{};
  };
  line.epilog = kStatEpilog;
  const auto outcome = cli::parse_or_complete(line, arguments, complete_recording);
  if (!outcome) return outcome.error();
  if (*outcome == cli::Parsed::HelpShown) return ParsedStat{*outcome, {}};
  auto target = choose_target(words.target, !words.options.command.empty());
  if (!target) return std::move(target.error());
  words.options.target = std::move(*target);
  for (const auto check : {choose_form, choose_rows, choose_events, check_words})
    if (auto done = check(words); !done) return std::move(done.error());
  return ParsedStat{*outcome, std::move(words.options)};
}

}  // namespace tacho::record
