#include "report/filter_options.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "cli/option_rows.h"
#include "report/command.h"
#include "report/profile/stack_names.h"
#include "report/query/expressions.h"

namespace tacho::report {
namespace {

using Set = Result<> (*)(Filter&, std::string_view name, std::string_view text);

struct FilterRow {
  std::string_view names, value, help;
  Set set;
};

template <auto Member>
Result<> set_numbers(Filter& filter, std::string_view name, std::string_view text) {
  auto list = parse_number_list(name, text);
  if (!list) return std::move(list.error());
  filter.*Member = std::move(*list);
  return Done{};
}

template <auto Member>
Result<> set_names(Filter& filter, std::string_view, std::string_view text) {
  filter.*Member = parse_name_list(text);
  return Done{};
}

template <auto Member>
Result<> set_text(Filter& filter, std::string_view, std::string_view text) {
  filter.*Member = text;
  return Done{};
}

Result<> set_range(Filter& filter, std::string_view name, std::string_view text) {
  const auto bytes = cli::parse_number(name, text, 0, ~std::uint64_t{0});
  if (!bytes) return bytes.error();
  filter.symbol_range = *bytes;
  return Done{};
}

Result<> set_condition(Filter& filter, std::string_view name, std::string_view text) {
  if (filter.condition) return use_error(std::string(name) + " is given twice; join both conditions by &&");
  auto condition = parse_where(name, text);
  if (!condition) return std::move(condition.error());
  filter.condition = std::move(*condition);
  return Done{};
}

constexpr FilterRow kFilterRows[] = {
    {"-C,--cpu", "LIST", "only samples of these processors: 0,2-5", set_numbers<&Filter::cpus>},
    {"--pid", "LIST", "only samples of these processes", set_numbers<&Filter::pids>},
    {"--tid", "LIST", "only samples of these threads", set_numbers<&Filter::tids>},
    {"-c,--comms,--comm", "LIST", "only samples of threads with these names", set_names<&Filter::comms>},
    {"--time", "RANGE",
     "only samples of this time: 1.5,2.25 in seconds (several with blanks between them), or parts of the "
     "capture: 10%-20%, 10%/2, 50% (several by commas)",
     set_text<&Filter::time_text>},
    {"-d,--dsos,--dso", "LIST", "only samples that ran in these modules: paths, or their last parts",
     set_names<&Filter::dsos>},
    {"-S,--symbols,--symbol", "LIST",
     "only samples that ran in these functions, or at these addresses in hexadecimal",
     set_names<&Filter::symbols>},
    {"--addr-range", "BYTES", "with -S ADDRESS: and up to N bytes after it", set_range},
    {"--symbol-filter", "PART", "only samples that ran in functions whose names have this in them",
     set_text<&Filter::symbol_part>},
    {"--where", "EXPR",
     "only samples for which this holds: 'lat_ns > 1ms && comm == \"dd\"'; it may use fields of the event's "
     "payload or tracepoint, comm, pid, tid, cpu, time, period, cgroup, event (sample.comm where a field has "
     "that name), the name of a function where a field is an address of code ('function == \"malloc\"'), "
     "&& || ! == != < <= > >= + - * / % & |, ~ (looks like 'kworker/*'), numbers as 10us and 4k, and names "
     "of enums",
     set_condition},
};

// For an empty list, as of an option whose shell variable is not set.
Error no_event_name() {
  return use_error("--event: '' is the name of no event; without the option all are meant");
}

// The spellings in "-d,--dsos" that are not taken, joined again.
std::string free_names(std::string_view names, const std::vector<std::string_view>& taken) {
  std::string free;
  for (const std::string& name : parse_name_list(names))
    if (std::ranges::find(taken, name) == taken.end()) free.append(free.empty() ? "" : ",").append(name);
  return free;
}

}  // namespace

void add_filter_options(std::vector<cli::Option>& rows, Filter& filter,
                        const std::vector<std::string_view>& taken) {
  const std::size_t first = rows.size();
  for (const FilterRow& row : kFilterRows) {
    const std::string names = free_names(row.names, taken);
    if (names.empty()) continue;
    rows.push_back(
        {names, cli::Takes::Value, std::string(row.value), std::string(row.help),
         [&filter, names, set = row.set](std::string_view text) { return set(filter, names, text); }});
  }
  cli::mark_common(rows, first);
}

cli::Option event_option(Filter& filter) {
  return {"--event", cli::Takes::Value, "NAME[,NAME]",
          "only samples of these events: names, with or without modifiers (cycles for cycles:u), or patterns "
          "('sched:*')",
          [&filter](std::string_view text) -> Result<> {
            if (text.empty()) return no_event_name();
            std::ranges::move(parse_name_list(text), std::back_inserter(filter.events));
            return Done{};
          }};
}

Result<std::vector<std::string>> files_named(const std::string& word) {
  struct stat status {};
  if (word.find_first_of("*?[") == std::string::npos || ::stat(word.c_str(), &status) == 0)
    return std::vector{word};
  glob_t found{};
  std::vector<std::string> files;
  if (::glob(word.c_str(), 0, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (files.empty()) return use_error("no file matches '" + word + "'");
  return files;
}

Result<> check_captures_differ(const std::vector<std::string>& files) {
  std::map<std::pair<dev_t, ino_t>, std::string> known;
  for (const std::string& file : files) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const auto [first, is_new] = known.emplace(std::pair(status.st_dev, status.st_ino), file);
    if (!is_new)
      return use_error(
          printable(file) +
          (first->second == file ? " is named twice" : " and " + printable(first->second) + " are one file") +
          ": a capture is one measurement");
  }
  return Done{};
}

cli::Option no_renames_option(bool& matches_calls) {
  return sets("--no-renames",
              "functions under different names are different, also if their callers and callees are equal",
              matches_calls, false);
}

cli::Option event_list_option(std::string names, std::string help, std::string& list) {
  return {std::move(names), cli::Takes::Value, "NAME[,NAME]",
          "which events: names, with or without modifiers (cycles for cycles:u), or patterns ('sched:*') (" +
              std::move(help) + ")",
          [&list](std::string_view text) -> Result<> {
            if (text.empty()) return no_event_name();
            list.append(list.empty() ? "" : ",").append(text);
            return Done{};
          }};
}

cli::Option class_option(std::string name, std::string help, Redaction& redaction,
                         Result<> (Redaction::*set)(std::string_view)) {
  return {std::move(name), cli::Takes::Value, "CLASSES", std::move(help),
          [&redaction, set](std::string_view text) { return (redaction.*set)(text); }};
}

void add_switch_options(std::vector<cli::Option>& rows, SwitchOptions& options) {
  rows.push_back(cli::text("--switch-on", "EVENT",
                           "show samples only after the first such event, which is not shown. EVENT: a name, "
                           "with or without modifiers, or a pattern that matches one event",
                           options.on));
  rows.push_back(cli::text("--switch-off", "EVENT",
                           "stop showing samples at such an event, until an event of --switch-on. As in "
                           "perf, without --switch-on only the first such event is left out",
                           options.off));
  rows.push_back(cli::flag("--show-on-off-events", "also show the events of --switch-on and --switch-off",
                           options.shows_switches));
}

void add_wait_options(std::vector<cli::Option>& rows, WaitOptions& options) {
  rows.push_back(
      cli::flag("--off-cpu",
                "waits, weighted by their time in nanoseconds: recorded by -e offcpu, or between two "
                "sched:sched_switch (with -g). Idle CPUs and runnable threads are left out. --comm, -C and "
                "--where test the waiting thread when it goes to sleep",
                options.is_asked_for));
  rows.push_back({"--wakers", cli::Takes::Optional, "N",
                  "as --off-cpu, and after a frame '-- waker --' the stack of the waker, leaf first (-e "
                  "offcpu,waking, or sched:sched_waking with -g); [timer] or [irq] for a timer or another "
                  "interrupt. =N: also the waker's waker, up to N wakers",
                  [&options](std::string_view text) -> Result<> {
                    const auto number = text.empty() ? Result<std::uint64_t>(1)
                                                     : cli::parse_number("--wakers", text, 1, kMostWakers);
                    if (!number) return number.error();
                    options.is_asked_for = true;
                    options.wakers = static_cast<unsigned>(*number);
                    return Done{};
                  }});
}

Result<> check_stack_source(StackSource& source, Filter& filter) {
  if (auto sound = check_slow(source.slow); !sound || !source.is_of_times()) return sound;
  const std::string option = source.is_wall ? "--wall" : "--off-cpu";
  if (source.slow.is_asked_for())
    return use_error(option + " shows times of threads: leave out --slowest and --slow-where");
  if (!source.weight.empty() || !source.event.empty())
    return use_error(option + ": stacks are weighted by time; leave --weight and --event out");
  if (!are_of_threads(source.roots))
    return use_error(option + " shows threads: --by takes comm, pid and tid");
  if (source.is_wall && (filter.condition != nullptr || !filter.cpus.empty() || filter.looks_at_names()))
    return use_error(
        "--wall shows the whole time of threads; of the options that choose samples it takes --comm, --pid, "
        "--tid and --time");
  source.waits.who = take_who(filter);
  return Done{};
}

}  // namespace tacho::report
