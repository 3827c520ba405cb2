// tacho diff BEFORE... --to AFTER...: what changed between two sides of captures, and whether it is certain.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "cli/message_text.h"
#include "report/commands.h"
#include "report/compare/comparison.h"
#include "report/filter_options.h"
#include "report/views/diff/verdict.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kMostRows = 100'000, kMostWork = 1'000'000'000'000'000;

enum class DiffForm : std::uint8_t { Text, Markdown, Json };

struct VerdictOptions {
  ReadingOptions reading;
  ComparisonQuestion question;
  std::vector<std::string> before, after;
  DiffForm form = DiffForm::Text;
  std::uint64_t rows = 20;
};

// A percentage above 0, as a part of 1.
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
                   "Compares captures of two sides, before and after: which functions cost more or less, "
                   "whether that is certain, "
                   "and what explains it. A capture is one measurement: with four or more a side there is a "
                   "verdict (changed, same, "
                   "inconclusive); fewer are indicative. tacho record --repeat --interleave makes them.");
  line.synopsis = "BEFORE... --to AFTER... [OPTION]...";
  line.options = own_options(options);
  add_reading_options(line.options, options.reading);
  std::erase_if(line.options, [](const cli::Option& option) { return option.names.starts_with("-i"); });
  add_filter_options(line.options, options.reading.session.filter);
  line.words = [&side](std::vector<std::string> words) -> Result<> {
    std::ranges::move(words, std::back_inserter(side));
    return Done{};
  };
  line.epilog =
      "Examples:\n"
      "  tacho record --repeat 10 --interleave -g -o runs -- ./old.sh ./new.sh\n"
      "  tacho diff runs/old/*.data --to runs/new/*.data\n";
  return line;
}

// Reads the captures one after another into a comparison.
struct DiffReader {
  Result<> add(Session& session, const std::string& name, bool is_after, TextOutput& out) {
    auto added =
        comparison.add(session, name, is_after, [&](Sink& sink) { run_with_progress(session, sink, out); });
    if (!added) return std::move(added.error()).in(printable(name));
    for (const std::string& note : *added)
      shown.notes.push_back("tacho diff: " + printable(name) + ": " + note);
    return Done{};
  }

  // A capture that is not the session's.
  Result<> read(const std::string& name, bool is_after, const SessionOptions& like, TextOutput& out) {
    SessionOptions wanted = like;
    wanted.input = name;
    auto session = Session::open(std::move(wanted));
    if (!session) return std::move(session.error());
    if (auto added = add(*session, name, is_after, out); !added) return added;
    session->report_missing_symbols();
    add_new_findings(session->diagnostics(), name);
    if (session->diagnostics().incomplete()) shown.status = cli::kIncomplete;
    return Done{};
  }

  // Captures of a series have the same findings: each is a line once, with the first capture that has it.
  void add_new_findings(const format::Diagnostics& diagnostics, const std::string& name) {
    const std::vector<std::string> plain = findings_text(diagnostics, ""),
                                   lines = findings_text(diagnostics, name);
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (seen.insert(plain[i]).second && !name.empty()) shown.notes.push_back(lines[i]);
  }

  Comparison& comparison;
  Shown& shown;
  std::set<std::string> seen{};
};

// The command that draws the difference; empty: a name has a comma.
std::string flame_graph_command(const VerdictOptions& options) {
  const auto listed = [](std::span<const std::string> names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
    return cli::shell_word(text);
  };
  for (const auto* const side : {&options.before, &options.after})
    for (const std::string& name : *side)
      if (name.find(',') != std::string::npos) return {};
  const auto also = std::span(options.after).subspan(1);
  return fmt::format("tacho flamegraph --base {} -i {}{} -o difference.svg", listed(options.before),
                     cli::shell_word(options.after[0]), also.empty() ? "" : " --also " + listed(also));
}

Result<Shown> show(Session& first, const SessionOptions& wanted, TextOutput& out,
                   const VerdictOptions& options) {
  Shown shown(Symbols::NotUsed);
  Comparison comparison(options.question, options.before.size() + options.after.size());
  DiffReader reader{comparison, shown};
  if (auto read = reader.add(first, options.before[0], false, out); !read) return std::move(read.error());
  first.report_missing_symbols();
  reader.add_new_findings(first.diagnostics(), "");  // which are printed with the session's own
  for (const bool is_after : {false, true}) {
    const auto& names = is_after ? options.after : options.before;
    for (std::size_t i = is_after ? 0 : 1; i < names.size(); ++i)
      if (auto read = reader.read(names[i], is_after, wanted, out); !read) return std::move(read.error());
  }
  const std::string matched = comparison.match_sides();
  const auto differences = differences_of(comparison.captures());
  const auto events = comparison.judge();
  if (!events) return events.error();
  const JudgedComparison judged{comparison, *events, differences, matched};
  if (options.form == DiffForm::Json) {
    write_verdict_json(out, judged);
  } else if (options.form == DiffForm::Markdown) {
    write_verdict_markdown(out, judged, options.rows);
  } else {
    write_verdict_text(out, judged, options.rows);
    if (const std::string command = flame_graph_command(options); !command.empty()) {
      out.text("\nA picture of the difference: " + command);
      out.end_line();
    }
  }
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
  if (options.reading.session.filter.condition != nullptr)
    return use_error("--where cannot be used here; --comm, --pid, --time and others can");
  return Done{};
}

}  // namespace

Result<cli::ExitStatus> run_verdict(const std::vector<std::string>& arguments) {
  VerdictOptions options;
  const auto to = std::ranges::find(arguments, "--to");
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
                                 return show(session, wanted, out, options);
                               });
  });
}

}  // namespace tacho::report
