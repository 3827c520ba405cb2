// tacho diff BEFORE... --to AFTER...: what changed between two sides of captures, and whether it is certain.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

#include "cli/absent_options.h"
#include "cli/completion.h"
#include "cli/message_text.h"
#include "report/commands.h"
#include "report/compare/comparison.h"
#include "report/compare/field_comparison.h"
#include "report/filter_options.h"
#include "report/output/output_parts.h"
#include "report/views/diff/difference_picture.h"
#include "report/views/diff/verdict.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kMostRows = 100'000, kMostWork = 1'000'000'000'000'000;

constexpr cli::AbsentOption kAbsentInVerdict[] = {
    {"-i,--input", cli::Takes::Value,
     "captures are named without an option: tacho diff BEFORE... --to AFTER..."},
    {"--where", cli::Takes::Value, "it is for one capture; --comm, --pid, --time and others are for all"},
    {"-c,--compute", cli::Takes::Value, "it is for tacho diff BEFORE AFTER, without --to"},
};

enum class DiffForm : std::uint8_t { Text, Markdown, Json };

struct VerdictOptions {
  ReadingOptions reading;
  ComparisonQuestion question;
  std::vector<FieldName> fields;  // compared in place of functions; empty: functions
  std::vector<std::string> before, after;
  bool has_flame_graph = false;  // ReadingOptions::more_outputs has its file
  DiffForm form = DiffForm::Text;
  std::uint64_t rows = 20;
};

// A percentage above 0, kept as a fraction.
cli::Option part_option(std::string names, std::string help, double& part) {
  const std::string name = names;
  return {
      std::move(names), cli::Takes::Value, "PERCENT", std::move(help),
      [name, &part](std::string_view text) -> Result<> {
        const auto percent = parse_percentage(text);
        if (!percent || *percent <= 0)
          return use_error(name + ": '" + std::string(text) + "' is no percentage above 0, such as 3 or 0.5");
        part = *percent / 100;
        return Done{};
      }};
}

std::vector<cli::Option> own_options(VerdictOptions& options) {
  ComparisonQuestion& question = options.question;
  return {
      part_option("--min-effect", "a change below this part of the total does not matter (default: 3)",
                  question.test.minimal_effect),
      part_option("--alpha", "false alarms: at most this part of comparisons of equal programs (default: 5)",
                  question.test.alpha),
      flag("--paired",
           "the captures of both sides were recorded in turns, and are compared in pairs (at least 6)",
           question.test.is_paired),
      cli::text("--per", "EVENT", "compare costs per EVENT (app:request), not shares of the total",
                question.per),
      cli::number(
          "--work", "N",
          "compare costs per unit of work; each capture did N units (1: whole costs, for a command that "
          "always does the same)",
          1, kMostWork, question.work),
      event_list_option("--event-filter,--event", "default: all, each compared by itself",
                        question.source.event),
      cli::text("--weight", "WHAT", "what is added up: period, samples or a field (default: as tacho folded)",
                question.source.weight),
      no_renames_option(question.matches_calls),
      {"--field", cli::Takes::Value, "[EVENT.]FIELD",
       "compare the values of a field of a payload or tracepoint (open.lat_ns), not functions: their mean, "
       "median and higher percentiles; may be given several times",
       [&options](std::string_view name) -> Result<> {
         options.fields.push_back(field_name_of(name));
         if (options.fields.back().field.empty()) return use_error("--field: the name of a field is missing");
         return Done{};
       }},
      {"--flamegraph", cli::Takes::Value, "FILE",
       "also write the flame graph of the difference to FILE (SVG)",
       [&options](std::string_view file) -> Result<> {
         if (file.empty() || file == "-")
           return use_error("--flamegraph: name a file; standard output has the verdict");
         options.reading.more_outputs = {{"--flamegraph", std::string(file)}};
         options.has_flame_graph = true;
         return Done{};
       }},
      cli::number("--limit", "N", "the most functions that are listed (default: 20)", 1, kMostRows,
                  options.rows),
      sets("--markdown", "a comment for a pull request", options.form, DiffForm::Markdown),
      sets("--json", "all functions that can matter, as JSON (docs/comparing.md)", options.form,
           DiffForm::Json),
  };
}

cli::CommandLine describe(VerdictOptions& options, std::vector<std::string>& side) {
  auto line =
      command_line("diff",
                   "Compares captures of two sides, before and after: which functions cost more or less "
                   "(or how a field's values changed), whether that is certain, and what explains it. A "
                   "capture is one measurement: with four or more a side there is a "
                   "verdict (changed, same, "
                   "inconclusive); fewer are indicative. tacho record --repeat --interleave makes them.");
  line.synopsis = "BEFORE... --to AFTER... [OPTION]...";
  line.options = own_options(options);
  add_reading_options(line.options, options.reading);
  std::erase_if(line.options, [](const cli::Option& option) { return option.names == "-i,--input"; });
  add_filter_options(line.options, options.reading.session.filter, {"--where", "-c", "-C"});
  cli::add_absent_options(line.options, kAbsentInVerdict);
  line.words = [&side](std::vector<std::string> words) -> Result<> {
    for (const std::string& word : words) {
      auto named = files_named(word);
      if (!named) return std::move(named.error());
      std::ranges::move(*named, std::back_inserter(side));
    }
    return Done{};
  };
  line.epilog =
      "Examples:\n"
      "  tacho record --repeat 10 --interleave -g -o runs -- ./old.sh ./new.sh\n"
      "  tacho diff runs/old/*.data --to runs/new/*.data\n"
      "  tacho diff runs/old/*.data --to runs/new/*.data --work 1 --flamegraph difference.svg\n"
      "  tacho diff runs/old/*.data --to runs/new/*.data --field open.lat_ns\n\n"
      "Exit status: 0 also when something changed; tacho check with [[regression]] is for builds that decide "
      "by it.\n";
  return line;
}

// Reads the captures of both sides, one after another, into a comparison.
class DiffReader {
 public:
  // Adds a capture to the comparison. Returns notes about it.
  using Add = std::function<Result<std::vector<std::string>>(Session& session, const std::string& name,
                                                             bool is_after, const RunSession& run)>;
  DiffReader(Add add, Shown& shown) : add_(std::move(add)), shown_(shown) {}

  // `first`: the session of the first capture.
  Result<> read(Session& first, const VerdictOptions& options, const SessionOptions& like, TextOutput& out) {
    read_head(first);
    if (auto read = add(first, options.before[0], false, out); !read) return read;
    first.report_missing_symbols();
    add_new_findings(first.diagnostics(), "");  // marks them as seen: the session prints them
    for (const bool is_after : {false, true}) {
      const auto& names = is_after ? options.after : options.before;
      for (std::size_t i = is_after ? 0 : 1; i < names.size(); ++i)
        if (auto read = read_other(names[i], is_after, like, out); !read) return read;
    }
    return Done{};
  }

 private:
  Result<> add(Session& session, const std::string& name, bool is_after, TextOutput& out) {
    auto added = add_(session, name, is_after, [&](Sink& sink) { run_with_progress(session, sink, out); });
    if (!added) return std::move(added.error()).in(printable(name));
    for (const std::string& note : *added)
      if (seen_.insert(note).second) shown_.notes.push_back("tacho diff: " + printable(name) + ": " + note);
    return Done{};
  }

  // A capture that is not the session's.
  Result<> read_other(const std::string& name, bool is_after, const SessionOptions& like, TextOutput& out) {
    SessionOptions wanted = like;
    wanted.input = name;
    auto session = Session::open(std::move(wanted));
    if (!session) return std::move(session.error());
    read_head(*session);
    if (auto added = add(*session, name, is_after, out); !added) return added;
    session->report_missing_symbols();
    add_new_findings(session->diagnostics(), name);
    if (session->diagnostics().incomplete()) shown_.status = cli::kIncomplete;
    return Done{};
  }

  // Captures of a series have the same findings: each is a line once, with the first capture that has it.
  void add_new_findings(const format::Diagnostics& diagnostics, const std::string& name) {
    const std::vector<std::string> plain = findings_text(diagnostics, ""),
                                   lines = findings_text(diagnostics, name);
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (seen_.insert(plain[i]).second && !name.empty()) shown_.notes.push_back(lines[i]);
  }

  Add add_;
  Shown& shown_;
  std::set<std::string> seen_;
};

void write_verdict(TextBuffer& out, const JudgedComparison& judged, const VerdictOptions& options) {
  switch (options.form) {
    case DiffForm::Text:
      return write_verdict_text(out, judged, options.rows);
    case DiffForm::Markdown:
      return write_verdict_markdown(out, judged, options.rows);
    case DiffForm::Json:
      return write_verdict_json(out, judged);
  }
}

Result<Shown> show_functions(Session& first, const SessionOptions& wanted, TextOutput& out,
                             const VerdictOptions& options) {
  Shown shown(Symbols::NotUsed);
  Comparison comparison(options.question, options.before.size() + options.after.size());
  DiffReader reader(
      [&](Session& session, const std::string& name, bool is_after, const RunSession& run) {
        return comparison.add_capture(session, name, is_after, run);
      },
      shown);
  if (auto read = reader.read(first, options, wanted, out); !read) return std::move(read.error());
  JudgedComparison judged{.captures = comparison.captures(),
                          .compared = what_is_compared(options.question),
                          .test = options.question.test,
                          .differences = {},
                          .functions = &comparison,
                          .matched = comparison.match_sides()};
  const auto differences = differences_of(comparison.captures());
  const auto events = comparison.judge();
  if (!events) return events.error();
  judged.differences = differences;
  judged.events = *events;
  TextBuffer text;
  write_verdict(text, judged, options);
  if (!options.has_flame_graph) {
    out.text(text.view());
    return shown;
  }
  write_part(out, text.view());
  if (auto drawn = write_difference_svg(out, comparison, *events, judged.matched, first.pool()); !drawn)
    return std::move(drawn.error());
  return shown;
}

Result<Shown> show_fields(Session& first, const SessionOptions& wanted, TextOutput& out,
                          const VerdictOptions& options) {
  Shown shown(Symbols::NotUsed);
  std::vector<FieldName> wanted_fields = options.fields;
  for (FieldName& one : wanted_fields)
    if (one.event.empty()) one.event = options.question.source.event;
  FieldComparison comparison(std::move(wanted_fields), options.question.test);
  DiffReader reader(
      [&](Session& session, const std::string& name, bool is_after,
          const RunSession& run) -> Result<std::vector<std::string>> {
        if (auto added = comparison.add_capture(session, name, is_after, run); !added)
          return std::move(added.error());
        return std::vector<std::string>();
      },
      shown);
  if (auto read = reader.read(first, options, wanted, out); !read) return std::move(read.error());
  const auto differences = differences_of(comparison.captures());
  const std::vector<ComparedField> fields = comparison.judge();
  write_verdict(out,
                {.captures = comparison.captures(),
                 .compared = "values of fields",
                 .test = comparison.test(),
                 .differences = differences,
                 .fields = fields},
                options);
  return shown;
}

Result<> check(const VerdictOptions& options) {
  if (options.before.empty() || options.after.empty())
    return use_error("captures of both sides are needed: tacho diff BEFORE... --to AFTER...");
  if (!options.question.per.empty() && options.question.work > 0)
    return use_error("--per and --work are two units of work; give one of them");
  if (options.question.test.is_paired && options.before.size() != options.after.size())
    return use_error(fmt::format("--paired: the sides have {} and {} captures; pairs need as many of both",
                                 options.before.size(), options.after.size()));
  const bool is_of_costs =
      !options.question.per.empty() || options.question.work > 0 || !options.question.source.weight.empty();
  if (!options.fields.empty() && (is_of_costs || options.has_flame_graph))
    return use_error(
        "--field compares values in place of functions: leave out --per, --work, --weight and "
        "--flamegraph");
  for (const auto* const side : {&options.before, &options.after})
    if (auto apart = check_captures_differ(*side); !apart) return apart;
  return Done{};
}

}  // namespace

Result<cli::ExitStatus> run_verdict(const std::vector<std::string>& arguments) {
  VerdictOptions options;
  const bool completes = cli::asks_for_completion(arguments);
  const auto to = completes ? arguments.end() : std::ranges::find(arguments, "--to");
  const std::vector<std::string> head(arguments.begin(), to);
  if (to != arguments.end()) {
    const auto parsed = cli::parse(describe(options, options.after), {to + 1, arguments.end()});
    if (!parsed) return parsed.error();
    if (*parsed == cli::Parsed::HelpShown) return cli::kWhole;
  }
  return run_command(describe(options, options.before), head, [&]() -> Result<cli::ExitStatus> {
    if (to == arguments.end() && options.before.size() == 2) {
      options.after = {options.before.back()};
      options.before.pop_back();
    }
    if (auto checked = check(options); !checked) return std::move(checked.error());
    options.reading.session.input = options.before[0];
    options.reading.other_inputs.assign(options.before.begin() + 1, options.before.end());
    std::ranges::copy(options.after, std::back_inserter(options.reading.other_inputs));
    return show_session_beside(options.reading,
                               [&options](Session& session, const SessionOptions& wanted, TextOutput& out) {
                                 return options.fields.empty() ? show_functions(session, wanted, out, options)
                                                               : show_fields(session, wanted, out, options);
                               });
  });
}

}  // namespace tacho::report
