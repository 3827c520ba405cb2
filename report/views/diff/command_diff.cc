// tacho diff: the rows of two or more captures side by side, as perf diff prints them.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/absent_options.h"
#include "report/commands.h"
#include "report/filter_options.h"
#include "report/output/terminal.h"
#include "report/views/diff/perf_diff.h"
#include "report/views/report/command_report.h"
#include "report/views/report/report_options.h"
#include "report/views/report/report_sink.h"
#include "report/views/tui/compared_rows.h"

namespace tacho::report {
namespace {

using cli::Takes;

struct Options {
  ReportOptions rows;                 // what a row is, for all captures
  std::vector<std::string> captures;  // the baseline first
  DiffLook look;
};

constexpr cli::AbsentOption kAbsent[] = {
    {"-i,--input", Takes::Value, "captures are named without an option: tacho diff OLD NEW"},
    {"-D,--dump-raw-trace", Takes::Nothing, "tacho dump FILE prints the records of a capture"},
    {"--stream", Takes::Nothing, "streams of branches are not compared; tacho report -b lists branches"},
    {"--cycles-hist", Takes::Nothing,
     "cycles of blocks are not compared; tacho report --total-cycles lists the blocks of a capture"},
    {"--where", Takes::Value, "it is for one capture; --comm, --pid, --time and others are for all"},
    {"-v,--verbose", Takes::Nothing, "-p prints the periods, -F how a value is computed"},
};

// The options of all views, but for the letters that perf diff uses otherwise.
void add_reading_rows(std::vector<cli::Option>& rows, ReadingOptions& reading) {
  add_reading_options(rows, reading);
  std::erase_if(rows, [](const cli::Option& row) { return row.names == "-i,--input"; });
  for (cli::Option& row : rows)
    if (row.names == "-o,--output") row.names = "--output";
  rows.push_back(as_perf_option(reading));
}

void add_value_options(std::vector<cli::Option>& rows, Options& options) {
  DiffLook& look = options.look;
  rows.push_back(
      {"-c,--compute", Takes::Value, "HOW",
       "what is computed of a row, of its weight in a capture (NEW) and in the baseline (OLD): delta, "
       "the difference of their percents; delta-abs, the same with the largest change first (the "
       "default); ratio, NEW / OLD; or wdiff:W1,W2, NEW * W2 - OLD * W1",
       [&look](std::string_view text) -> Result<> {
         if (text == "cycles")
           return use_error(
               "-c cycles: cycles of blocks are not compared; tacho report --total-cycles "
               "lists the blocks of a capture");
         auto method = parse_diff_method(text);
         if (!method) return std::move(method.error());
         look.method = *method;
         return Done{};
       }});
  rows.push_back(
      {"-o,--order", Takes::Value, "N",
       "the capture by whose values rows are sorted: 0 is the baseline, 1 (the default) the next one",
       [&look](std::string_view text) -> Result<> {
         const auto order = cli::parse_number("--order", text, 0, 65535);
         if (!order) return order.error();
         look.order = *order;
         return Done{};
       }});
  rows.push_back(flag("-p,--period", "also print the weights (event periods)", look.has_period));
  rows.push_back(flag("-F,--formula", "also print how each value is computed", look.has_formula));
  rows.push_back(
      flag("-b,--baseline-only",
           "only rows that the baseline and another capture have; the baseline's column is of these",
           look.has_common_only));
  rows.push_back(cli::text("-t,--field-separator", "SEP",
                           "separate columns by SEP; a point stands for it in names", look.separator));
  rows.push_back(flag("-q,--quiet", "rows only", look.is_quiet));
}

void add_row_options(std::vector<cli::Option>& rows, Options& options) {
  ReportOptions& report = options.rows;
  rows.push_back(
      cli::text("-s,--sort", "KEYS",
                "the keys that make a row, as in tacho report (default: dso,symbol); a + before the "
                "first key adds to the default",
                report.columns.sort));
  rows.push_back(event_option(report.reading.session.filter));
  rows.push_back({"-C,--comms,--comm", Takes::Value, "LIST", "only samples of threads with these names",
                  [&report](std::string_view text) -> Result<> {
                    report.filter.comms = parse_name_list(text);
                    return Done{};
                  }});
  add_filter_options(rows, report.filter,
                     {"-C", "-c", "--comms", "--comm", "--where", "--symbol-filter", "--addr-range"});
  rows.push_back({"--percentage", Takes::Value, "OF",
                  "relative: shares of the filtered total; absolute: shares of the whole total (the default)",
                  [&report](std::string_view given) -> Result<> {
                    if (given != "relative" && given != "absolute")
                      return use_error("--percentage: '" + std::string(given) +
                                       "' is not known; it is relative or absolute");
                    report.look.is_relative = given == "relative";
                    return Done{};
                  }});
  rows.push_back(sets(
      "--json", "two captures as a JSON document, as tacho report --base prints it (docs/report-forms.md)",
      report.form, ReportForm::Json));
  rows.push_back(
      sets("--csv", "two captures as CSV, as tacho report --base prints it", report.form, ReportForm::Csv));
  rows.push_back(no_renames_option(report.matches_calls));
  rows.push_back(accepted("-m,--modules", Takes::Nothing, "accepted as in perf, without effect"));
}

// The part of --time that is for a capture: perf separates them by colons.
std::string time_of(const std::string& text, std::size_t capture) {
  std::string_view rest = text;
  if (rest.find(':') == std::string_view::npos) return text;
  for (; capture > 0; --capture) rest.remove_prefix(std::min(rest.find(':'), rest.size() - 1) + 1);
  return std::string(rest.substr(0, rest.find(':')));
}

// One capture and its rows.
struct Side {
  std::string name;
  ReportOptions options;
  std::optional<Session> opened;  // the first capture's session is the command's
  Session* session = nullptr;
  std::unique_ptr<ReportSink> sink;
  const ReportTable* table = nullptr;
};

Result<> read_side(Side& side, TextOutput& out) {
  read_head(*side.session);
  if (auto checked = check_events(*side.session, side.options.reading); !checked)
    return std::move(checked.error());
  side.sink = std::make_unique<ReportSink>(*side.session, side.options, false);
  if (auto arranged = side.sink->arrange(); !arranged) return std::move(arranged.error());
  run_with_progress(*side.session, *side.sink, out);
  if (const auto failure = side.sink->failure()) return *failure;
  side.sink->report(side.session->diagnostics());
  side.table = &side.sink->finish();
  return Done{};
}

// A filter that leaves a key one value hides its column, as in perf.
bool is_hidden(const Side& side, const KeyUse& use) {
  const ReportColumns& columns = side.table->columns();
  const std::vector<Column> single = single_value_columns(side.options.filter, columns);
  return std::ranges::any_of(single, [&](const Column& column) { return &columns.keys[column.key] == &use; });
}

// perf takes all code of a module that has no name as one row, and shows the first of its addresses.
DiffInput input_of(const Side& side, const Entries& entries, EntryId entry, bool is_separated) {
  const RowFacts facts = entries.facts(entry);
  DiffInput input;
  input.period = entries.value(Column::Kind::Overhead, entry, 0);
  for (const KeyUse& use : side.table->columns().keys) {
    const KeyShow show{use, side.table->facts()};
    const bool is_symbol = use.key->name == "symbol";
    std::string cell = printable(use.key->show(show, facts), side.options.reading.names);
    const bool is_unnamed = is_symbol && !facts.function->has_symbol();
    input.identity.push_back(!is_symbol   ? cell
                             : is_unnamed ? std::string()
                                          : std::string(facts.function->name()));
    if (is_unnamed) input.rank = static_cast<std::int64_t>(facts.function->start);
    if (is_hidden(side, use)) continue;
    // perf makes room for unknown modules only in aligned columns.
    const bool has_own_width = use.key->width != nullptr && !(is_separated && use.key->name == "dso");
    const std::size_t width = has_own_width ? use.key->width(show, facts) : shown_width(cell);
    input.widths.push_back(std::max(width, use.key->least_width));
    input.cells.push_back(std::move(cell));
  }
  return input;
}

// Adds the rows of an event of one capture.
void add_rows(DiffTable& diff, const Side& side, std::size_t capture, BlockId block) {
  const bool is_separated = !diff.look().separator.empty();
  EntryIndex index(side.table->columns().keys, side.table->facts(), side.table->functions());
  const Entries entries(side.table->names(), block, index, side.table->entry_options(block));
  std::vector<DiffInput> rows;
  for (const EntryId entry : entries.ids()) rows.push_back(input_of(side, entries, entry, is_separated));
  diff.add_capture(capture, rows, entries.whole(0, side.options.look.is_relative));
}

const auto& event_of(const Side& side, BlockId block) {
  return side.session->events()[side.table->profile().blocks()[block].leader];
}

// The same event of another capture: by name, else by what it counts, as of cycles and cycles:u.
std::optional<BlockId> same_event(const Side& baseline, BlockId block, const Side& other) {
  const auto& event = event_of(baseline, block);
  std::optional<BlockId> found;
  for (const BlockId i : other.table->profile().blocks().ids()) {
    const auto& candidate = event_of(other, i);
    if (candidate.name == event.name) return i;
    if (!found && candidate.attr.type == event.attr.type && candidate.attr.config == event.attr.config)
      found = i;
  }
  return found;
}

std::string names_of(const std::vector<Side>& sides, Names names) {
  std::string text = "# Data files:\n";
  for (std::size_t i = 0; i < sides.size(); ++i)
    text += fmt::format("#  [{}] {} {}\n", i, printable(sides[i].name, names), i == 0 ? "(Baseline)" : "");
  return text + "#\n";
}

void write_tables(TextOutput& out, const std::vector<Side>& sides, const Options& options) {
  std::vector<DiffKey> keys;
  for (const KeyUse& use : sides[0].table->columns().keys) {
    using Fit = SortKey::Fit;
    if (!is_hidden(sides[0], use))
      keys.push_back({use.header, use.key->fit == Fit::Cut || use.key->fit == Fit::Padded});
  }
  const Names names = options.rows.reading.names;
  const DiffLook& look = options.look;
  for (const BlockId block : sides[0].table->profile().blocks().ids()) {
    DiffTable diff(look, sides.size());
    add_rows(diff, sides[0], 0, block);
    for (std::size_t i = 1; i < sides.size(); ++i)
      if (const auto same = same_event(sides[0], block, sides[i])) add_rows(diff, sides[i], i, *same);
    diff.finish();
    if (!look.is_quiet) {
      out.text(fmt::format("{}# Event '{}'\n#\n", block != BlockId{} ? "\n" : "",
                           printable(event_of(sides[0], block).name, names)));
      if (sides.size() > 2) out.text(names_of(sides, names));
    }
    out.text(diff_text(diff, sides.size(), keys));
    out.line_end();
  }
}

// Events that some captures lack, a line each.
std::vector<std::string> missing_events(const std::vector<Side>& sides) {
  std::vector<std::string> notes;
  const auto blocks_of = [](const Side& side) { return side.table->profile().blocks().ids(); };
  for (const Side& other : std::span(sides).subspan(1)) {
    for (const BlockId block : blocks_of(sides[0]))
      if (!same_event(sides[0], block, other))
        notes.push_back(fmt::format("tacho: {}: no event {}, which the baseline has", printable(other.name),
                                    printable(event_of(sides[0], block).name)));
    for (const BlockId block : blocks_of(other))
      if (!same_event(other, block, sides[0]))
        notes.push_back(fmt::format("tacho: {}: event {} is left out, as the baseline does not have it",
                                    printable(other.name), printable(event_of(other, block).name)));
  }
  return notes;
}

Result<Shown> show_side_by_side(Session& session, const SessionOptions& wanted, TextOutput& out,
                                const Options& options) {
  Shown shown(Symbols::Used);
  std::vector<Side> sides(options.captures.size());
  for (std::size_t i = 0; i < sides.size(); ++i) {
    Side& side = sides[i];
    side.name = options.captures[i];
    side.options = options.rows;
    if (i > 0) {
      SessionOptions other = wanted;
      other.input = side.name;
      other.filter.time_text = time_of(options.rows.filter.time_text, i);
      auto opened = Session::open(std::move(other));
      if (!opened) return std::move(opened.error());
      side.opened.emplace(std::move(*opened));
    }
    side.session = i == 0 ? &session : &*side.opened;
    if (auto read = read_side(side, out); !read) return std::move(read.error()).in(printable(side.name));
  }
  write_tables(out, sides, options);
  for (std::size_t i = 1; i < sides.size(); ++i) {
    Session& other = *sides[i].session;
    other.report_missing_symbols();
    std::ranges::move(findings_text(other.diagnostics(), sides[i].name), std::back_inserter(shown.notes));
    if (other.diagnostics().incomplete()) shown.status = cli::kIncomplete;
  }
  if (!options.look.is_quiet && !options.rows.reading.perf_bytes.is_asked_for) {
    std::ranges::move(missing_events(sides), std::back_inserter(shown.notes));
    shown.notes.emplace_back(
        "tacho: one capture a side shows what differs, not what is more than noise; several of each give a "
        "verdict: "
        "tacho record --repeat 5, tacho diff BEFORE... --to AFTER...");
  }
  return shown;
}

Result<> settle(Options& options) {
  std::vector<std::string>& captures = options.captures;
  if (captures.empty()) captures = {"perf.data.old", "perf.data"};
  if (captures.size() == 1) captures.insert(captures.begin(), "perf.data.old");
  if (std::ranges::find(captures, "-") != captures.end())
    return use_error("diff compares files; record into a file instead of a pipe");
  if (options.look.order >= captures.size())
    return use_error(fmt::format("--order {}: there are {} captures, and the baseline is 0",
                                 options.look.order, captures.size()));
  if (options.rows.is_for_programs() && captures.size() > 2)
    return use_error("--json and --csv are of two captures");
  if (options.rows.is_for_programs() && (options.look.is_changed() || !options.rows.filter.time_text.empty()))
    return use_error("--json and --csv have all weights: leave out -b, -c, -F, -o, -p, -q, -t and --time");
  options.look.is_as_perf = options.rows.reading.perf_bytes.is_asked_for;
  return Done{};
}

Result<cli::ExitStatus> compare(Options& options) {
  ReportOptions& report = options.rows;
  if (report.is_for_programs()) {
    report.reading.session.input = options.captures[1];
    return print_comparison(report, options.captures[0]);
  }
  constexpr std::string_view kUsual = "dso,symbol";
  const std::string sort = std::exchange(report.columns.sort, {});
  report.columns.fields = "overhead,";
  if (sort.starts_with('+'))
    report.columns.fields.append(kUsual).append(",").append(sort.substr(1));
  else
    report.columns.fields += sort.empty() ? kUsual : sort;
  report.wants_children = false;
  report.graph.form = GraphForm::None;
  report.grouping = Grouping::Never;
  report.branches.are_rows = false;
  report.reading.session.input = options.captures[0];
  report.reading.other_inputs.assign(options.captures.begin() + 1, options.captures.end());
  if (auto prepared = prepare_report(report); !prepared) return std::move(prepared.error());
  report.reading.session.filter.time_text = time_of(report.filter.time_text, 0);
  return show_session_beside(report.reading,
                             [&](Session& session, const SessionOptions& wanted, TextOutput& out) {
                               return show_side_by_side(session, wanted, out, options);
                             });
}

cli::CommandLine describe_diff(Options& options) {
  auto line = command_line("diff",
                           "Shows the rows of two or more captures side by side, as perf diff does: the "
                           "share in the first one, the "
                           "baseline, and how each other one differs from it. Rows are matched by the texts "
                           "of their keys, events by "
                           "their names.");
  line.synopsis = "[[OLD] NEW [MORE...]] [options]";
  add_value_options(line.options, options);
  add_row_options(line.options, options);
  add_reading_rows(line.options, options.rows.reading);
  cli::add_absent_options(line.options, kAbsent);
  line.words = [&options](const std::vector<std::string>& words) -> Result<> {
    options.captures = words;
    return Done{};
  };
  line.epilog =
      "OLD is perf.data.old unless it is named, NEW perf.data.\n"
      "With --to, as in tacho diff BEFORE... --to AFTER..., captures of two sides get a verdict; tacho diff "
      "--to --help.\n\n"
      "Examples:\n"
      "  tacho diff\n"
      "  tacho diff before.data after.data -c ratio -p\n"
      "  tacho diff before.data after.data -s symbol\n\n" +
      line.epilog;
  return line;
}

}  // namespace

Result<cli::ExitStatus> run_diff(const std::vector<std::string>& arguments) {
  if (std::ranges::find(arguments, "--to") != arguments.end()) return run_verdict(arguments);
  Options options;
  return run_command(describe_diff(options), arguments, [&options]() -> Result<cli::ExitStatus> {
    if (auto settled = settle(options); !settled) return std::move(settled.error());
    return compare(options);
  });
}

}  // namespace tacho::report
