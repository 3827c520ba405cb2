// tacho fleet: captures of many hosts in one database, and questions to all of them.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "cli/completion.h"
#include "report/commands.h"
#include "report/database/result_text.h"
#include "report/views/fleet/fleet_choice.h"
#include "report/views/fleet/fleet_load.h"
#include "report/views/fleet/fleet_stacks.h"
#include "report/views/fleet/fleet_store.h"

namespace tacho::report {
namespace {

struct Options {
  ReadingOptions reading;
  FleetPlace place;
  FleetChoice choice;
  std::string base, function;
  std::int64_t step = kFleetHour;  // ns
  std::uint64_t top = 30;
  ResultForm form = ResultForm::Text;
  CaptureLabels labels;
  std::vector<std::string> inputs, picture_options;
  std::string followed;
};

void add_place_options(std::vector<cli::Option>& rows, Options& options) {
  rows.push_back(cli::text(
      "--db", "FILE", "the fleet's database: a file of DuckDB, or http://HOST:PORT/DATABASE of ClickHouse",
      options.place.database));
  rows.push_back(duckdb_option(options.place.library));
}

cli::Option file_option(Options& options) {
  return cli::text("-o,--output", "FILE", "write to this file (default: standard output)",
                   options.reading.output);
}

void add_output_options(std::vector<cli::Option>& rows, Options& options) {
  rows.push_back(file_option(options));
  rows.push_back(
      sets("--no-pager", "print a long text to the terminal at once", options.reading.paging, Paging::Never));
  rows.push_back(wide_option("-w,--wide", options.reading));
}

void add_form_options(std::vector<cli::Option>& rows, Options& options) {
  add_output_options(rows, options);
  rows.push_back(
      sets("--csv", "comma-separated values, a first line of names", options.form, ResultForm::Csv));
  rows.push_back(sets("--json", "one JSON object a row", options.form, ResultForm::Json));
}

cli::Option base_option(Options& options) {
  return cli::text("--base", "NAME=VALUE,...",
                   "the other side: the same choice with these changed, as release=2.0 or host-class=old",
                   options.base);
}

cli::Option function_option(Options& options, std::string help) {
  return cli::text("--function", "NAME", std::move(help), options.function);
}

Result<std::unique_ptr<FleetStore>> open_asked_store(const Options& options) {
  return open_fleet(options.place, FleetUse::Ask);
}

Result<TextOutput> open_text(const Options& options) {
  const ReadingOptions& reading = options.reading;
  auto file = reading.is_standard_output()
                  ? Result<OutputFile>(standard_output(reading.paging))
                  : OutputFile::create(reading.output, mode_of_output(std::span(&options.place.database, 1)));
  if (!file) return std::move(file.error());
  return TextOutput(std::move(*file));
}

// Prints rows that this program made.
class MadeRows {
 public:
  MadeRows(TextOutput& out, const Options& options, const std::vector<SqlColumn>& columns)
      : text_(out, options.form, options.reading.room()), reader_(text_.reader()) {
    reader_.head(columns);
  }
  void add(const std::vector<std::string>& cells) {
    std::vector<SqlCell> row(cells.begin(), cells.end());
    reader_.row(row);
  }
  void finish() { text_.finish(); }

 private:
  ResultText text_;
  SqlReader reader_;
};

// A choice with its event, and its other side.
struct Question {
  FleetChoice choice, base;
  std::string unit;
};
Result<Question> find_question(FleetStore& store, const Options& options) {
  Question question{.choice = options.choice, .base = options.choice, .unit = {}};
  auto event = find_event(store, options.choice);
  if (!event) return std::move(event.error());
  question.choice.event = question.base.event = event->name;
  question.unit = event->unit;
  if (options.base.empty()) return question;
  if (auto changed = change_choice("--base", options.base, question.base); !changed)
    return std::move(changed.error());
  return question;
}

Result<FleetStacks> read_stacks(FleetStore& store, const Options& options, const Question& question) {
  FleetStacks stacks;
  if (auto read = stacks.read_choice(store, question.choice, FleetSide::After); !read)
    return std::move(read.error());
  if (!options.base.empty())
    if (auto read = stacks.read_choice(store, question.base, FleetSide::Before); !read)
      return std::move(read.error());
  if (!options.base.empty() && stacks.total().before == 0)
    return Error{"--base: the fleet has no samples of that side"};
  if (auto named = stacks.read_names(store); !named) return std::move(named.error());
  return stacks;
}

// The stacks that the options ask for.
struct AskedStacks {
  Question question;
  FleetStacks stacks;
};
Result<AskedStacks> ask_for_stacks(const Options& options) {
  auto store = open_asked_store(options);
  if (!store) return std::move(store.error());
  auto question = find_question(**store, options);
  if (!question) return std::move(question.error());
  auto stacks = read_stacks(**store, options, *question);
  if (!stacks) return std::move(stacks.error());
  return AskedStacks{std::move(*question), std::move(*stacks)};
}

double percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

Result<cli::ExitStatus> show_top(const Options& options) {
  auto asked = ask_for_stacks(options);
  if (!asked) return std::move(asked.error());
  FleetStacks& stacks = asked->stacks;
  auto functions = stacks.count_functions();
  std::erase_if(functions, [](const auto& one) { return one.total.after == 0; });
  std::ranges::stable_sort(functions, std::greater(), [](const auto& one) { return one.self.after; });
  functions.resize(std::min<std::size_t>(functions.size(), options.top));
  auto out = open_text(options);
  if (!out) return std::move(out.error());
  MadeRows rows(*out, options,
                {{"self_percent", true},
                 {"total_percent", true},
                 {"self", true},
                 {"total", true},
                 {"function", false},
                 {"module", false}});
  for (const auto& one : functions)
    rows.add({fmt::format("{:.2f}", percent(one.self.after, stacks.total().after)),
              fmt::format("{:.2f}", percent(one.total.after, stacks.total().after)),
              std::to_string(one.self.after), std::to_string(one.total.after), one.name, one.module});
  rows.finish();
  if (auto done = out->finish(); !done) return std::move(done.error());
  return cli::kWhole;
}

Result<cli::ExitStatus> show_diff(const Options& options) {
  if (options.base.empty()) return use_error("--base: name the other side, as release=2.0");
  auto asked = ask_for_stacks(options);
  if (!asked) return std::move(asked.error());
  FleetStacks& stacks = asked->stacks;
  struct Row {
    double before = 0, after = 0;
    const FleetStacks::Function* function = nullptr;
  };
  std::vector<Row> changes;
  for (const auto& one : stacks.count_functions()) {
    if (one.self.before == 0 && one.self.after == 0) continue;
    changes.push_back({percent(one.self.before, stacks.total().before),
                       percent(one.self.after, stacks.total().after), &one});
  }
  std::ranges::stable_sort(changes, std::greater(),
                           [](const Row& row) { return std::abs(row.after - row.before); });
  changes.resize(std::min<std::size_t>(changes.size(), options.top));
  auto out = open_text(options);
  if (!out) return std::move(out.error());
  MadeRows rows(*out, options,
                {{"before_percent", true},
                 {"after_percent", true},
                 {"change", true},
                 {"function", false},
                 {"module", false}});
  for (const Row& row : changes)
    rows.add({fmt::format("{:.2f}", row.before), fmt::format("{:.2f}", row.after),
              options.form == ResultForm::Json ? fmt::format("{:.2f}", row.after - row.before)
                                               : fmt::format("{:+.2f}", row.after - row.before),
              row.function->name, row.function->module});
  rows.finish();
  if (auto done = out->finish(); !done) return std::move(done.error());
  return cli::kWhole;
}

Result<cli::ExitStatus> show_folded(const Options& options) {
  auto asked = ask_for_stacks(options);
  if (!asked) return std::move(asked.error());
  FleetStacks& stacks = asked->stacks;
  auto out = open_text(options);
  if (!out) return std::move(out.error());
  stacks.write_folded(*out, FleetStacks::Marks::None, !options.base.empty());
  if (auto done = out->finish(); !done) return std::move(done.error());
  return cli::kWhole;
}

// "Flame graph of the fleet: cpu-clock, service shop, release 2.1"
std::string title_of(const Question& question, const std::string& base) {
  std::string title = "Fleet: " + printable(question.choice.event);
  for (const auto& [name, value] : {std::pair("service", &question.choice.service),
                                    {"release", &question.choice.release},
                                    {"host", &question.choice.host},
                                    {"host class", &question.choice.host_class},
                                    {"kernel", &question.choice.kernel},
                                    {"cgroup", &question.choice.cgroup},
                                    {"comm", &question.choice.comm}})
    if (!value->empty()) title += fmt::format(", {} {}", name, printable(*value));
  return base.empty() ? title : title + ", from " + printable(base);
}

// The picture is that of tacho flamegraph --folded.
Result<cli::ExitStatus> show_flamegraph(const Options& options) {
  std::string title, folded;
  const auto scratch = ScratchFolder::create();
  if (!scratch) return scratch.error();
  {
    auto asked = ask_for_stacks(options);
    if (!asked) return std::move(asked.error());
    FleetStacks& stacks = asked->stacks;
    title = title_of(asked->question, options.base);
    folded = scratch->path() + "/stacks.folded";
    auto file = OutputFile::create(folded, mode_of_output(std::span(&options.place.database, 1)));
    if (!file) return std::move(file.error());
    TextOutput out(std::move(*file));
    stacks.write_folded(out, FleetStacks::Marks::Kinds, !options.base.empty());
    if (auto done = out.finish(); !done) return std::move(done.error());
  }
  std::vector<std::string> words{"--folded", folded, "--title", title};
  if (!options.reading.output.empty()) words.insert(words.end(), {"-o", options.reading.output});
  words.insert(words.end(), options.picture_options.begin(), options.picture_options.end());
  return run_flamegraph(words);
}

Result<cli::ExitStatus> show_section(const Options& options, std::string_view section) {
  auto store = open_asked_store(options);
  if (!store) return std::move(store.error());
  const auto question = find_question(**store, options);
  if (!question) return question.error();
  auto out = open_text(options);
  if (!out) return std::move(out.error());
  ResultText text(*out, options.form, options.reading.room());
  SqlValues values = question->choice.values();
  values.emplace("function", options.function);
  values.emplace("step_ns", std::to_string(options.step));
  if (auto asked = (*store)->ask(section, values, text.reader()); !asked) return std::move(asked.error());
  text.finish();
  if (auto done = out->finish(); !done) return std::move(done.error());
  return cli::kWhole;
}

Result<cli::ExitStatus> show_series(const Options& options) {
  if (options.function.empty()) return use_error("--function: name the function");
  const bool is_of_hours = options.choice.is_of_hours() && options.step % kFleetHour == 0;
  return show_section(options, is_of_hours ? "series" : "series_between");
}
Result<cli::ExitStatus> show_captures(const Options& options) {
  return show_section(options, options.choice.is_of_hours() ? "captures" : "captures_between");
}

Result<cli::ExitStatus> load_captures(const Options& options) {
  if (options.inputs.empty() == options.followed.empty())
    return use_error("name captures or folders, or --follow DIR");
  return load_fleet({.reading = options.reading,
                     .place = options.place,
                     .labels = options.labels,
                     .inputs = options.inputs,
                     .followed = options.followed});
}

void add_load_options(std::vector<cli::Option>& rows, Options& options) {
  add_reading_options(rows, options.reading);
  std::erase_if(rows, [](const cli::Option& row) {
    return row.names.starts_with("-i,") || row.names.starts_with("-o,") || row.names == "--no-pager";
  });
  rows.push_back(cli::text("--service", "NAME", "what these captures are of", options.labels.service));
  rows.push_back(cli::text("--release", "NAME", "the release that ran", options.labels.release));
  rows.push_back(cli::text("--host-class", "NAME", "the kind of host", options.labels.host_class));
  rows.push_back(
      cli::text("--host", "NAME", "the host's name (default: the recorded one)", options.labels.host));
  rows.push_back(cli::text("--follow", "DIR",
                           "load each file of this folder when its recorder has finished it (record "
                           "--switch-output), until Ctrl-C",
                           options.followed));
}

void add_question_options(std::vector<cli::Option>& rows, Options& options) {
  add_choice_options(rows, options.choice);
  add_form_options(rows, options);
}

// The words after `tacho fleet`.
struct Verb {
  std::string_view name, synopsis, help;
  void (*add_options)(std::vector<cli::Option>& rows, Options& options);
  Result<cli::ExitStatus> (*run)(const Options& options);
};

constexpr Verb kVerbs[] = {
    {"load", "[OPTIONS] FILE|DIR...",
     "Loads captures. Each is loaded once: its id is a digest of its bytes. What is damaged is set aside by "
     "name.",
     add_load_options, load_captures},
    {"flamegraph", "[OPTIONS] [-- OPTIONS OF tacho flamegraph]",
     "Draws the stacks of a choice as a flame graph; with --base the difference of two choices.",
     [](std::vector<cli::Option>& rows, Options& options) {
       add_choice_options(rows, options.choice);
       rows.push_back(base_option(options));
       rows.push_back(file_option(options));
     },
     show_flamegraph},
    {"folded", "[OPTIONS]", "Prints the stacks of a choice with their weights, as tacho folded does.",
     [](std::vector<cli::Option>& rows, Options& options) {
       add_choice_options(rows, options.choice);
       rows.push_back(base_option(options));
       add_output_options(rows, options);
     },
     show_folded},
    {"top", "[OPTIONS]", "Prints the functions with the most samples of their own.",
     [](std::vector<cli::Option>& rows, Options& options) {
       add_question_options(rows, options);
       rows.push_back(cli::number("--top", "N", "only the first N (default: 30)", 1, std::uint64_t{1} << 32,
                                  options.top));
     },
     show_top},
    {"diff", "[OPTIONS] --base NAME=VALUE,...",
     "Prints the functions whose share of the samples changed most from another choice to this one.",
     [](std::vector<cli::Option>& rows, Options& options) {
       add_question_options(rows, options);
       rows.push_back(base_option(options));
       rows.push_back(cli::number("--top", "N", "only the first N (default: 30)", 1, std::uint64_t{1} << 32,
                                  options.top));
     },
     show_diff},
    {"series", "[OPTIONS] --function NAME", "Prints what a function and its callees weigh, by time.",
     [](std::vector<cli::Option>& rows, Options& options) {
       add_question_options(rows, options);
       rows.push_back(function_option(options, "the function"));
       rows.push_back({"--step", cli::Takes::Value, "SECONDS",
                       "the length of a step (default: 3600). Whole hours are answered faster",
                       [&options](std::string_view text) -> Result<> {
                         const auto seconds = cli::parse_number("--step", text, 1, 366 * 24 * 3600);
                         if (!seconds) return seconds.error();
                         options.step = static_cast<std::int64_t>(*seconds) * 1'000'000'000;
                         return Done{};
                       }});
     },
     show_series},
    {"captures", "[OPTIONS]", "Prints the captures that a choice is made of, to open them.",
     [](std::vector<cli::Option>& rows, Options& options) {
       add_question_options(rows, options);
       rows.push_back(function_option(options, "only samples with this function in their stack"));
     },
     show_captures},
};

constexpr std::string_view kExamples =
    "Examples:\n"
    "  tacho fleet load --db fleet.db --service shop --release 2.1 /captures\n"
    "  tacho fleet load --db fleet.db --service shop --follow /var/lib/tacho\n"
    "  tacho fleet flamegraph --db fleet.db --service shop --from 2026-11-28 -o shop.svg\n"
    "  tacho fleet diff --db fleet.db --service shop --release 2.1 --base release=2.0\n"
    "  tacho fleet series --db fleet.db --function malloc --step 60\n\n";

cli::CommandLine describe(const Verb& verb, Options& options) {
  auto line = command_line("fleet " + std::string(verb.name), std::string(verb.help));
  line.synopsis = verb.synopsis;
  line.epilog = std::string(kExamples) + line.epilog;
  line.words = [&verb, &options](std::vector<std::string> words) -> Result<> {
    if (verb.run == load_captures) {
      options.inputs = std::move(words);
    } else if (verb.run == show_flamegraph) {
      options.picture_options = std::move(words);
    } else {
      return use_error("'" + words.front() + "': tacho fleet " + std::string(verb.name) +
                       " takes options only");
    }
    return Done{};
  };
  add_place_options(line.options, options);
  verb.add_options(line.options, options);
  return line;
}

// --help without a verb: what most verbs have.
Result<cli::ExitStatus> show_fleet_help() {
  Options options;
  auto line =
      command_line("fleet",
                   "Puts captures of many hosts into one database, and asks all of them. The samples of a "
                   "question are chosen by service, release, host, control group, time and so on.");
  line.synopsis = "VERB [OPTIONS]";
  add_place_options(line.options, options);
  add_choice_options(line.options, options.choice);
  std::string verbs = "Verbs; tacho fleet VERB --help lists the options of each:\n";
  for (const Verb& verb : kVerbs) verbs += fmt::format("  {:<10}  {}\n", verb.name, verb.help);
  line.epilog = verbs + "\n" + std::string(kExamples) + line.epilog;
  return run_command(line, {"--help"}, [] { return cli::kWhole; });
}

// `arguments`: kCompleteOption, the verb, and what follows it.
Result<cli::ExitStatus> complete_fleet(std::vector<std::string> arguments) {
  if (arguments.size() < 3) {
    std::vector<cli::Candidate> verbs;
    for (const Verb& verb : kVerbs) verbs.push_back({std::string(verb.name), std::string(verb.help)});
    cli::print_candidates({.text = arguments.back()}, verbs);
    return cli::kWhole;
  }
  const auto* const verb = std::ranges::find(kVerbs, arguments[1], &Verb::name);
  if (verb == std::end(kVerbs)) return cli::kWhole;
  arguments.erase(arguments.begin() + 1);
  Options options;
  return run_command(describe(*verb, options), arguments, [] { return cli::kWhole; });
}

}  // namespace

Result<cli::ExitStatus> run_fleet(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && (arguments[0] == "--help" || arguments[0] == "-h")) return show_fleet_help();
  if (cli::asks_for_completion(arguments)) return complete_fleet(arguments);
  const auto* const verb =
      arguments.empty() ? std::end(kVerbs) : std::ranges::find(kVerbs, arguments[0], &Verb::name);
  if (verb == std::end(kVerbs)) {
    std::string known;
    for (const Verb& one : kVerbs) known += (known.empty() ? "" : ", ") + std::string(one.name);
    const std::string given = arguments.empty() ? "no verb" : "'" + arguments[0] + "' is no verb";
    return use_error(given + "; it is one of " + known);
  }
  Options options;
  return run_command(describe(*verb, options), {arguments.begin() + 1, arguments.end()},
                     [&options, verb] { return verb->run(options); });
}

}  // namespace tacho::report
