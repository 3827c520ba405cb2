#include "report/views/report/report_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "cli/absent_options.h"
#include "cli/nearest.h"
#include "format/base/units.h"
#include "report/filter_options.h"
#include "report/profile/sort_keys.h"
#include "report/views/report/report_columns.h"

namespace tacho::report {
namespace {

using cli::Takes;

// --time-quantum: "10ms", or a number of ns; in ns.
Result<std::uint64_t> parse_time_quantum(std::string_view text) {
  const auto nanoseconds = format::parse_time(text, 1);
  if (!nanoseconds || *nanoseconds < 0 || *nanoseconds >= 0x1p63)
    return use_error("--time-quantum: '" + std::string(text) +
                     "' is no time; it is a number and s, ms, us or ns, as in 10ms");
  return static_cast<std::uint64_t>(*nanoseconds);
}

// "12,20,0"
Result<> set_widths(ReportOptions& options, std::string_view given) {
  constexpr std::uint64_t kMostWidth = 65535;
  options.look.widths.clear();
  for (std::size_t at = 0; at <= given.size();) {
    const std::size_t end = std::min(given.find(',', at), given.size());
    const auto width = cli::parse_number("--column-widths", given.substr(at, end - at), 0, kMostWidth);
    if (!width) return width.error();
    options.look.widths.push_back(*width);
    at = end + 1;
  }
  return Done{};
}

std::string list_of_keys(ReportMode mode) {
  std::string lines;
  for (const SortKey* const key : sort_keys()) {
    if (key->mode != mode) continue;
    lines += '\n';
    lines += key->name;
    lines.append(18 - std::min<std::size_t>(key->name.size(), 17), ' ');
    lines += key->help;
  }
  return lines;
}

void add_key_options(std::vector<cli::Option>& rows, ReportOptions& options) {
  std::string known = list_of_keys(ReportMode::Samples);
  known += "\nOf branches (-b):" + list_of_keys(ReportMode::Branches);
  known += "\nOf memory accesses (--mem-mode):" + list_of_keys(ReportMode::Memory);
  rows.push_back(cli::text(
      "-s,--sort", "KEYS",
      "the keys that make a row (default: comm,dso,sym; trace if all events are tracepoints; for branches "
      "comm,dso_from,symbol_from,symbol_to,cycles). A + before the first key adds to the default. A key is "
      "one of these, or a field of a tracepoint or payload, as FIELD, EVENT.FIELD or EVENT.*:" +
          known,
      options.columns.sort));
  rows.push_back(cli::text("-F,--fields", "COLUMNS",
                           "the columns, in this order: keys and the names below. A + before the first adds "
                           "to the default columns: " +
                               weight_column_names(),
                           options.columns.fields));
  rows.push_back(flag("-H,--hierarchy",
                      "print a tree of rows: one level for each key of --sort; keys in braces share one: -s "
                      "'{comm,pid},dso,sym'. Implies --no-children",
                      options.has_levels));
  rows.push_back(flag("--latency",
                      "columns and order by wall-clock time, which N threads that run at once share (for "
                      "captures with --switch-events)",
                      options.columns.prefers_latency));
  rows.push_back(
      flag("-n,--show-nr-samples", "a column with the number of samples", options.columns.shows_samples));
  rows.push_back(flag("--show-total-period", "a column with the period", options.columns.shows_period));
  rows.push_back(flag("--show-cpu-utilization", "columns with the shares of kernel code and user code",
                      options.columns.shows_modes));
  rows.push_back({"--time-quantum", Takes::Value, "TIME", "the interval of the key time (default: 100ms)",
                  [&options](std::string_view given) -> Result<> {
                    auto quantum = parse_time_quantum(given);
                    if (!quantum) return quantum.error();
                    options.facts.time_quantum = *quantum;
                    return Done{};
                  }});
  rows.push_back(flag("--ns", "print times in nanoseconds", options.facts.has_nanoseconds));
  rows.push_back(
      flag("--full-source-path", "source lines have the full paths of files", options.has_folders));
  rows.push_back(flag("--raw-trace", "print tracepoints as fields, not by their print format",
                      options.facts.is_raw_trace));
}

void add_mode_options(std::vector<cli::Option>& rows, ReportOptions& options) {
  rows.push_back(
      sets("-b,--branch-stack",
           "rows are branches; each branch counts as one. The default for captures with branch stacks",
           options.branches.are_rows, true));
  rows.push_back(sets("--no-branch-stack", "rows are samples, even if the capture has branch stacks",
                      options.branches.are_rows, false));
  rows.push_back(flag("--branch-history",
                      "rows are samples (default keys: srcline,symbol,dso). Their call graphs include the "
                      "branches before each sample, by address, with how each went",
                      options.branches.extend_chains));
  rows.push_back(flag("--total-cycles",
                      "with rows of branches: list blocks of code, from the target of a branch to the next "
                      "branch, by the cycles that the processor counted",
                      options.branches.shows_cycles));
  rows.push_back(flag("--mem-mode",
                      "rows are memory accesses, weighted by the cost that the processor reported",
                      options.is_mem_mode));
}

constexpr std::string_view kBareGraph = "graph,0.5,caller,function,percent";  // -g without a value

void add_graph_options(std::vector<cli::Option>& rows, ReportOptions& options) {
  rows.push_back({"--children", cli::Takes::Nothing, "",
                  "a function also counts the samples of its callees (the default with call chains, but not "
                  "with --base)",
                  [&options](std::string_view) -> Result<> {
                    options.wants_children = options.asks_for_children = true;
                    return Done{};
                  }});
  rows.push_back(
      sets("--no-children", "a sample counts for its own function only", options.wants_children, false));
  rows.push_back({"-g,--call-graph", Takes::LastArg, "HOW",
                  "the call graphs below rows, as words in any order: graph, fractal, flat, folded or none; "
                  "the threshold in percent; the maximum of entries; caller or callee, which comes first; "
                  "function, address or srcline, the key of a node; percent, period or count. -g alone: "
                  "graph,0.5,caller,function,percent. Without -g the same, with callee for --no-children",
                  [&options](std::string_view given) -> Result<> {
                    options.asks_for_graph = true;
                    return parse_graph_options(given.empty() ? kBareGraph : given, options.graph);
                  }});
  rows.push_back(sets("--no-call-graph", "as -g none", options.graph.form, GraphForm::None));
  rows.push_back(flag("--show-ref-call-graph",
                      "as in perf, samples recorded without call chains (call-graph=no) get the chain of the "
                      "sample before, of any event",
                      options.shows_other_chains));
  rows.push_back(
      flag("-G,--inverted", "call graphs begin with the caller, whatever -g says", options.is_inverted));
  rows.push_back(cli::number("--max-stack", "N", "use only the first N frames of a call chain (default: 127)",
                             1, 65535, options.reading.session.max_stack));
  rows.push_back(cli::text("--ignore-callees", "REGEX",
                           "drop the callees of functions with such names from call chains",
                           options.chains.ignored_callees));
  rows.push_back({"-p,--parent", Takes::Value, "REGEX",
                  "add the key parent: the first function with such a name in a call chain",
                  [&options](std::string_view given) -> Result<> {
                    options.chains.parent = given;
                    return Done{};
                  }});
  rows.push_back(sets("-x,--exclude-other", "with --parent: only rows with such a function",
                      options.chains.has_parent_only, true));
  rows.push_back(sets("--no-exclude-other", "with --parent: also rows without one (the default)",
                      options.chains.has_parent_only, false));
}

void add_row_options(std::vector<cli::Option>& rows, ReportOptions& options) {
  rows.push_back(event_option(options.reading.session.filter));
  add_filter_options(rows, options.filter);
  rows.push_back({"--socket-filter", Takes::Value, "N",
                  "only samples of this socket, by its number in the header",
                  [&options](std::string_view given) -> Result<> {
                    const auto number = cli::parse_number("--socket-filter", given, 0, 65535);
                    if (!number) return number.error();
                    options.filter.socket = static_cast<std::uint32_t>(*number);
                    return Done{};
                  }});
  rows.push_back({"--parallelism", Takes::Value, "LIST",
                  "only samples during which this number of threads of the command ran: 1,2-4",
                  [&options](std::string_view given) -> Result<> {
                    auto list = parse_number_list("--parallelism", given);
                    if (!list) return std::move(list.error());
                    if (std::ranges::find(*list, 0U) != list->end())
                      return use_error("--parallelism: at least 1: the thread of a sample runs itself");
                    options.filter.parallelism = std::move(*list);
                    return Done{};
                  }});
  add_switch_options(rows, options.switches);
  rows.push_back(flag("-U,--hide-unresolved", "leave out frames and samples without a function's name",
                      options.hides_unknown));
  rows.push_back(
      {"--percent-limit", Takes::Value, "P",
       "leave out rows below P percent, and nodes of call graphs, unless a later -g sets a threshold",
       [&options](std::string_view given) -> Result<> {
         const std::string text(given);
         char* rest = nullptr;
         options.look.percent_limit = std::strtof(text.c_str(), &rest);
         if (rest == text.c_str() || *rest != '\0')
           return use_error("--percent-limit: '" + text + "' is no number; write percents as 0.5");
         options.graph.min_percent = options.look.percent_limit;
         return Done{};
       }});
  rows.push_back({"--percentage", Takes::Value, "OF",
                  "relative: shares of the filtered total; absolute: shares of the whole total (the default)",
                  [&options](std::string_view given) -> Result<> {
                    if (given != "relative" && given != "absolute") {
                      return use_error("--percentage: '" + std::string(given) +
                                       "' is not known; it is relative or absolute");
                    }
                    options.look.is_relative = given == "relative";
                    return Done{};
                  }});
  rows.push_back(cli::number("--top", "N", "only the first N rows of each table", 1, ~std::uint32_t{0},
                             options.look.top));
  rows.push_back(cli::text("--weight", "WHAT",
                           "the weight of a sample: period, samples, or a field of the payload or tracepoint "
                           "(default: the payload's field tagged role:weight, else period)",
                           options.weight));
  add_wait_options(rows, options.waits);
}

Result<> set_form(ReportOptions& options, ReportForm form) {
  if (options.form != ReportForm::Text && options.form != form)
    return use_error("--csv: rows are JSON or CSV, not both");
  options.form = form;
  return Done{};
}

void add_form_options(std::vector<cli::Option>& rows, ReportOptions& options) {
  rows.push_back(sets("--stdio", "print text, even on a terminal, where the interactive view is the default",
                      options.face, ReportFace::Text));
  rows.push_back(sets("--tui", "the interactive view (docs/terminal.md); an error without a terminal",
                      options.face, ReportFace::Screen));
  rows.push_back(
      {"--json", Takes::Nothing, "",
       "one JSON document with raw numbers: {tacho_report, mode, capture, lost_samples, incomplete, "
       "reports: [{events: [{event, samples, period, ...}], rows: [{keys: {KEY: VALUE}, self: "
       "[{samples, period, percent}], children, calls: [{frames, samples, period, ended_samples, "
       "ended_period, calls}]}]}]}; docs/report-forms.md describes it",
       [&options](std::string_view) { return set_form(options, ReportForm::Json); }});
  rows.push_back(
      {"--csv", Takes::Nothing, "",
       "a line of CSV (RFC 4180) for every row and event: event, the keys, samples, period, percent, "
       "and with children children_samples, children_period, children_percent; the first line names them",
       [&options](std::string_view) { return set_form(options, ReportForm::Csv); }});
  rows.push_back(stable_option("--csv --no-children --sort comm,dso,symbol", options.reading.session.symbols,
                               [&options]() -> Result<> {
                                 options.wants_children = false;
                                 options.columns.sort = "comm,dso,symbol";
                                 return set_form(options, ReportForm::Csv);
                               }));
  rows.push_back(cli::text("-t,--field-separator", "SEP", "separate columns by SEP, without alignment",
                           options.look.separator));
  rows.push_back({"-w,--column-widths", Takes::Value, "N,N",
                  "set the widths of columns; 0: as wide as needed",
                  [&options](std::string_view given) { return set_widths(options, given); }});
  rows.push_back(wide_option("--wide", options.reading));
  rows.push_back(flag("-q,--quiet", "rows only", options.look.is_quiet));
  rows.push_back(
      flag("-v,--verbose", "also print addresses and the source of each name", options.is_verbose));
  rows.push_back(flag("-T,--threads", "also print the counts of each thread's events (recorded with -s)",
                      options.shows_thread_values));
  rows.push_back(
      {"--pretty", Takes::Value, "FORM",
       "the form of -T: normal, a column for each event (the default), or raw, one value after another",
       [&options](std::string_view given) -> Result<> {
         if (given != "normal" && given != "raw")
           return use_error("--pretty: '" + std::string(given) + "' is not known; it is normal or raw");
         options.value_form = given == "raw" ? ValueForm::Raw : ValueForm::Table;
         return Done{};
       }});
  rows.push_back(
      sets("--group",
           "also print all events of a capture without groups in columns; groups are printed so by default",
           options.grouping, Grouping::Always));
  rows.push_back(
      sets("--no-group", "print each event of a group by itself", options.grouping, Grouping::Never));
  rows.push_back(cli::number("--group-sort-idx", "N", "sort rows first by this event of the group, from 0", 0,
                             65535, options.first_member));
  rows.push_back(flag("--header", "print the capture's header first", options.header.is_shown));
  rows.push_back(
      flag("--header-only", "print the capture's header and nothing else", options.header.is_alone));
  rows.push_back(sets("-I,--show-info", "with --header: also topology, caches and memory of the host",
                      options.header.detail, HeaderDetail::Full));
  rows.push_back(
      {"--stdio-color", Takes::Value, "MODE",
       "always, never, or auto: shares are coloured on a terminal, unless NO_COLOR is set (default: auto)",
       [&options](std::string_view given) -> Result<> {
         const auto colour = parse_colour("--stdio-color", given);
         if (!colour) return colour.error();
         options.colour = *colour;
         return Done{};
       }});
  rows.push_back(flag("-D,--dump-raw-trace",
                      "print every record with its bytes and fields, then the counts of --stats",
                      options.lists.records));
  rows.push_back(flag("--stats", "only count records by type and samples by event", options.lists.stats));
  rows.push_back(flag("--tasks", "only list threads, below their parents", options.lists.tasks));
  rows.push_back(flag("--mmaps", "as --tasks, with the mappings of each process", options.lists.maps));
}

// Options of perf for its interactive view, or for behaviour that is the default here.
void add_accepted_options(std::vector<cli::Option>& rows, ReportOptions& options) {
  rows.push_back(flag(
      "--stitch-lbr",
      "has no effect; an error for captures with call stacks of the processor (LBR), which are not stitched",
      options.stitches_lbr));
  rows.push_back(accepted("--skip-empty", Takes::Nothing, "leave out events without samples: the default"));
  rows.push_back(accepted(
      "--no-demangle-kernel,--demangle-kernel,--asm-raw,--no-asm-raw,--source,--no-source,-m,--modules,"
      "--ignore-vmlinux,--disable-order,--no-branch-history",
      Takes::Nothing, "options of perf without effect on the text of --stdio"));
  rows.push_back(
      accepted("-M,--disassembler-style,--objdump,--addr2line,--unwind-style,--prefix,--prefix-strip,--"
               "percent-type,--samples",
               Takes::Value, "the same; the value is ignored"));
}

constexpr std::string_view kInteractive =
    "there are no windows here; --tui opens a screen on the terminal, --stdio prints text";
constexpr std::string_view kTraces =
    "processor traces (AUX) are not decoded here; perf makes samples of them, which every command reads: "
    "perf inject --itrace=i1ms -i FILE -o DECODED";

// Options of perf report that tacho report does not have, and what to use instead.
constexpr cli::AbsentOption kAbsentOptions[] = {
    {"--gtk", Takes::Nothing, kInteractive},
    {"--itrace", Takes::Optional, kTraces},
};

}  // namespace

std::string_view ReportOptions::text_option() const {
  return first_text_option({{form == ReportForm::Json, "--json"},
                            {form == ReportForm::Csv, "--csv"},
                            {!look.separator.empty(), "-t"},
                            {!look.widths.empty(), "-w"},
                            {lists.records, "-D"},
                            {lists.stats, "--stats"},
                            {lists.tasks, "--tasks"},
                            {lists.maps, "--mmaps"},
                            {header.is_alone, "--header-only"},
                            {header.is_shown, "--header"},
                            {has_levels, "--hierarchy"},
                            {branches.shows_cycles, "--total-cycles"},
                            {shows_thread_values, "-T"},
                            {is_verbose, "-v"}},
                           look.is_quiet, colour, reading);
}

cli::CommandLine describe_report(ReportOptions& options) {
  auto line = command_line(
      "report",
      "Counts samples by thread, module and function, heaviest first, as perf report --stdio does. The "
      "weight of a sample is its event's period; if all periods are 0, as in BPF output, it is 1.");
  add_reading_options(line.options, options.reading);
  line.options.push_back(kcore_option(options.reading));
  line.options.push_back(as_perf_option(options.reading));
  line.options.push_back(truncated_stacks_option(options.reading.session.symbols.cut_mark));
  add_key_options(line.options, options);
  add_mode_options(line.options, options);
  add_graph_options(line.options, options);
  add_row_options(line.options, options);
  add_form_options(line.options, options);
  add_accepted_options(line.options, options);
  cli::add_absent_options(line.options, kAbsentOptions);
  line.epilog.insert(0,
                     "Examples:\n"
                     "  tacho report                                   perf.data: on a terminal a view to "
                     "walk through, else text\n"
                     "  tacho report web.data --no-children -s comm,sym\n"
                     "  tacho report web.data --comm nginx --where 'cpu < 4'\n"
                     "  tacho report new.data --base old.data          two captures side by side\n"
                     "\n");
  return line;
}

}  // namespace tacho::report
