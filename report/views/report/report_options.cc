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
#include "report/samples/chain_sources.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;
using Kind = Column::Kind;

struct WeightColumn {
  std::string_view name, header;
  Kind kind;
};
// In the order in which abbreviations are matched.
constexpr WeightColumn kWeightColumns[] = {
    {"overhead", "Overhead", Kind::Overhead},
    {"overhead_sys", "sys", Kind::OverheadSys},
    {"overhead_us", "usr", Kind::OverheadUser},
    {"overhead_guest_sys", "guest sys", Kind::OverheadGuestSys},
    {"overhead_guest_us", "guest usr", Kind::OverheadGuestUser},
    {"overhead_children", "Children", Kind::Children},
    {"sample", "Samples", Kind::Samples},
    {"period", "Period", Kind::Period},
    {"latency", "Latency", Kind::Latency},
    {"latency_children", "Latency", Kind::LatencyChildren},
};

// The names of columns that are not keys, for --help.
std::string weight_column_names() {
  std::string all;
  for (const WeightColumn& row : kWeightColumns) {
    if (!all.empty()) all += ' ';
    all += row.name;
  }
  return all;
}

struct Word {
  std::string_view text;
  std::size_t level = 0;
};

// As perf: each word is one level below the word before, and words in braces share a level. Empty words
// count.
std::vector<Word> words_of(std::string_view text) {
  std::vector<Word> words;
  bool is_in_braces = false;
  std::size_t level = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of("{}, ", at), text.size());
    if (end > at) words.push_back({text.substr(at, end - at), level});
    if (!is_in_braces) ++level;
    if (end < text.size() && text[end] == '{') is_in_braces = true;
    if (end < text.size() && text[end] == '}') is_in_braces = false;
    at = end + 1;
  }
  return words;
}

// Null: it is none. perf's keys come first, then its weights, then fields of captures: a field may be called
// "period" too.
const WeightColumn* weight_column_of(std::string_view word) {
  const auto found = std::ranges::find_if(
      kWeightColumns, [&](const WeightColumn& row) { return row.name.starts_with(word); });
  return sort_key_of(word) != nullptr || found == std::end(kWeightColumns) ? nullptr : &*found;
}

// Whether a word of --sort or --fields passes the test. A '+' before the first one adds to the default keys.
template <class Test>
bool any_word(const ReportOptions& options, Test&& passes) {
  return std::ranges::any_of(std::array{&options.sort, &options.fields}, [&](const std::string* list) {
    const std::string_view words = *list;
    return std::ranges::any_of(words_of(words.substr(words.starts_with('+') ? 1 : 0)),
                               [&](const Word& word) { return passes(word.text); });
  });
}

// Suggests the nearest name, or lists all names; fields of events are not suggested.
Error unknown_key(std::string_view option, std::string_view word, ReportMode mode) {
  std::vector<std::string> names;
  for (const SortKey* const key : sort_keys()) {
    if (key->name.starts_with(word) && key->mode != mode) {
      return use_error(fmt::format("{}: there is a key '{}' only with {}", option, key->name,
                                   key->mode == ReportMode::Branches
                                       ? "-b, where branch stacks were recorded"
                                       : "--mem-mode, where memory accesses were recorded"));
    }
    if (key->mode == mode || key->mode == ReportMode::Samples) names.emplace_back(key->name);
  }
  for (const WeightColumn& row : kWeightColumns) names.emplace_back(row.name);
  names.emplace_back("sym");  // perf's users write symbol
  std::string end = cli::suggestion(word, names);
  if (end.empty()) {
    const std::string own = mode == ReportMode::Samples ? std::string() : sort_key_names(mode) + " ";
    end = fmt::format("; known keys: {} {}{}, and fields of tracepoints and payloads as EVENT.FIELD or FIELD",
                      sort_key_names(ReportMode::Samples), own, weight_column_names());
  }
  return use_error(fmt::format("{}: there is no key '{}'{}", option, word, end));
}

class ColumnMaker {
 public:
  ColumnMaker(SampleFacts& facts, ReportColumns& columns) : facts_(&facts), columns_(&columns) {}

  Result<> add_all(std::string_view option, std::string_view list, std::vector<Column>& target) {
    for (const auto& [word, level] : words_of(list)) {
      if (auto added = add(option, word, target); !added) return added;
      if (&target == &columns_->sorted) columns_->levels.resize(target.size(), level);
    }
    return Done{};
  }

  static void add_once(Column column, std::vector<Column>& target) {
    if (std::ranges::find(target, column) == target.end()) target.push_back(column);
  }

 private:
  Result<> add(std::string_view option, std::string_view word, std::vector<Column>& target) {
    if (const WeightColumn* const weight = weight_column_of(word)) {
      add_once({weight->kind, 0}, target);
      return Done{};
    }
    const std::vector<KeyUse> uses = find_sort_keys(word, *facts_);
    // As perf, which supports these cycles on one architecture and ignores the word elsewhere.
    const auto& arch = facts_->session().features().environment.arch;
    if (!uses.empty() && uses[0].key->name.ends_with("p_stage_cyc") && !arch.value_or("").starts_with("ppc"))
      return Done{};
    if (uses.empty()) return unknown_key(option, word, facts_->options().mode);
    for (const KeyUse& use : uses) {
      const auto known =
          std::ranges::find_if(columns_->keys, [&](const KeyUse& other) { return is_same_key(use, other); });
      const auto index = static_cast<std::size_t>(known - columns_->keys.begin());
      if (known == columns_->keys.end()) columns_->keys.push_back(use);
      add_once({Kind::Key, index}, target);
    }
    return Done{};
  }

  SampleFacts* facts_;
  ReportColumns* columns_;
};

std::string default_sort(const SampleFacts& facts) {
  if (facts.options().mode == ReportMode::Branches) return "comm,dso_from,symbol_from,symbol_to,cycles";
  if (facts.options().mode == ReportMode::Memory) return std::string(kMemorySort);
  // In a pipe, events are not known yet when perf decides.
  const bool is_pipe = facts.session().layout().is_pipe;
  const auto& events = facts.session().events();
  const bool only_tracepoints =
      !is_pipe && !events.empty() &&
      std::ranges::all_of(events, [](const auto& event) { return event.attr.type == abi::kTracepoint; });
  if (!only_tracepoints) return "comm,dso,symbol";
  return facts.options().is_raw_trace ? "trace_fields" : "trace";
}

// As perf, which searches the whole list for the word.
void put_before(std::string_view word, std::string& list) {
  if (list.find(word) == std::string::npos) list = std::string(word) + "," + list;
}

bool names_latency(const std::string& sort) { return sort.find("latency") != std::string::npos; }

// The weights by which rows are sorted first.
void add_first_weights(const ColumnRequest& request, std::string& sort) {
  // As perf: latency in --sort replaces the overhead.
  if (names_latency(sort) && !request.prefers_latency) return;
  put_before("overhead", sort);
  if (request.prefers_latency) put_before("latency", sort);
  if (request.has_children) put_before("overhead_children", sort);
  if (request.has_children && request.prefers_latency) put_before("latency_children", sort);
}

void add_default_weights(const ColumnRequest& request, const std::vector<Column>& sorted,
                         std::vector<Column>& shown) {
  const auto has_overhead = [](const Column& column) { return column.kind == Kind::Overhead; };
  if (std::ranges::any_of(sorted, has_overhead)) {
    if (request.has_children && request.prefers_latency) shown.push_back({Kind::LatencyChildren, 0});
    if (request.has_children) shown.push_back({Kind::Children, 0});
    if (request.prefers_latency) shown.push_back({Kind::Latency, 0});
    shown.push_back({Kind::Overhead, 0});
  } else {
    std::ranges::copy_if(sorted, std::back_inserter(shown),
                         [](const Column& column) { return is_latency(column.kind); });
  }
  if (request.shows_modes) {
    shown.push_back({Kind::OverheadSys, 0});
    shown.push_back({Kind::OverheadUser, 0});
  }
  if (request.shows_samples) shown.push_back({Kind::Samples, 0});
  if (request.shows_period) shown.push_back({Kind::Period, 0});
}

void settle_keys(std::vector<KeyUse>& keys) {
  std::size_t facts = 0;
  for (KeyUse& use : keys) {
    if (use.key->read != nullptr) use.fact = facts++;
  }
}

}  // namespace

bool is_same_key(const KeyUse& a, const KeyUse& b) {
  return a.key == b.key && a.event == b.event && a.field == b.field && a.is_raw == b.is_raw;
}

Result<ReportColumns> make_columns(const ColumnRequest& request, SampleFacts& facts) {
  ReportColumns columns;
  ColumnMaker maker(facts, columns);
  const bool has_all = !request.fields.empty() && request.fields.front() != '+';
  std::string sort = request.sort;
  // perf adds this column, though only captures with branches fill it.
  if (request.has_ipc && sort.find("symbol") != std::string::npos)
    sort += facts.options().mode == ReportMode::Branches ? ",ipc_lbr" : ",ipc_null";
  if (sort == "+") return use_error("--sort: '+' names no key; write +KEY to add one to the usual ones");
  if (sort.starts_with('+')) sort = fmt::format("{},{}", default_sort(facts), sort.substr(1));
  columns.sort = sort;
  if (sort.empty() && !has_all) sort = default_sort(facts);
  if (!has_all) add_first_weights(request, sort);
  if (auto added = maker.add_all("--sort", sort, columns.sorted); !added) return added.error();
  // The weights before all keys are one level.
  for (std::size_t i = 0; i < columns.sorted.size() && request.prefers_latency && !has_all; ++i) {
    if (columns.sorted[i].kind == Kind::Key) break;
    columns.levels[i] = 0;
  }
  if (request.has_parent) {
    const std::size_t before = columns.sorted.size();
    if (auto added = maker.add_all("--parent", "parent", columns.sorted); !added) return added.error();
    columns.levels.resize(columns.sorted.size());
    // The innermost level.
    if (columns.sorted.size() > before) columns.levels.back() = columns.sorted.size() + sort.size();
  }
  columns.has_usual_weights = !has_all;
  if (!has_all) add_default_weights(request, columns.sorted, columns.shown);
  const std::string_view fields = request.fields;
  if (auto added =
          maker.add_all("--fields", has_all || fields.empty() ? fields : fields.substr(1), columns.shown);
      !added) {
    return added.error();
  }
  for (const Column& column : columns.sorted) ColumnMaker::add_once(column, columns.shown);
  for (const Column& column : columns.shown) ColumnMaker::add_once(column, columns.sorted);
  columns.levels.resize(columns.sorted.size());
  settle_keys(columns.keys);
  return columns;
}

std::string header_of(const Column& column, const ReportColumns& columns, bool has_children) {
  if (column.kind == Kind::Key) return columns.keys[column.key].header;
  if (column.kind == Kind::Overhead && has_children && columns.has_usual_weights) return "Self";
  const auto row = std::ranges::find(kWeightColumns, column.kind, &WeightColumn::kind);
  return std::string(row->header);
}

bool ReportColumns::shows_modes() const {
  const auto has_it = [](const Column& column) {
    return column.kind >= Kind::OverheadSys && column.kind <= Kind::OverheadGuestUser;
  };
  return std::ranges::any_of(shown, has_it) || std::ranges::any_of(sorted, has_it);
}

namespace {

struct GraphWord {
  std::string_view word;
  void (*apply)(GraphOptions&);
};

// In the order in which perf matches abbreviations: "f" is flat.
constexpr GraphWord kWords[] = {
    {"graph", [](GraphOptions& o) { o.form = GraphForm::Graph; }},
    {"flat", [](GraphOptions& o) { o.form = GraphForm::Flat; }},
    {"fractal", [](GraphOptions& o) { o.form = GraphForm::Fractal; }},
    {"folded", [](GraphOptions& o) { o.form = GraphForm::Folded; }},
    {"caller", [](GraphOptions& o) { o.order = ChainOrder::Caller, o.is_order_given = true; }},
    {"callee", [](GraphOptions& o) { o.order = ChainOrder::Callee, o.is_order_given = true; }},
    {"function", [](GraphOptions& o) { o.key = ChainKey::Function; }},
    {"address", [](GraphOptions& o) { o.key = ChainKey::Address; }},
    {"srcline", [](GraphOptions& o) { o.key = ChainKey::SourceLine; }},
    {"branch", [](GraphOptions& o) { o.adds_branches = true; }},
    {"percent", [](GraphOptions& o) { o.value = GraphValue::Percent; }},
    {"period", [](GraphOptions& o) { o.value = GraphValue::Period; }},
    {"count", [](GraphOptions& o) { o.value = GraphValue::Count; }},
};

}  // namespace

Result<> parse_graph_options(std::string_view text, GraphOptions& options) {
  bool has_percent = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word(text.substr(at, end - at));
    at = end + 1;
    if (word.empty()) continue;
    if (std::string_view("none").starts_with(word)) {
      options.form = GraphForm::None;
      return Done{};
    }
    const auto known =
        std::ranges::find_if(kWords, [&](const GraphWord& row) { return row.word.starts_with(word); });
    if (known != std::end(kWords)) {
      known->apply(options);
      continue;
    }
    char* rest = nullptr;
    if (!has_percent) {
      options.min_percent = std::strtod(word.c_str(), &rest);
      has_percent = true;
    } else {
      options.print_limit = static_cast<std::uint32_t>(std::strtoul(word.c_str(), &rest, 0));
    }
    if (rest == word.c_str()) {
      return use_error("--call-graph: '" + word +
                       "' is neither a number nor one of graph, flat, fractal, folded, none, caller, callee, "
                       "function, address, srcline, branch, percent, period, count");
    }
  }
  if (options.form == GraphForm::None)
    return use_error("--call-graph: none was said before; name a form again: graph, flat, fractal or folded");
  return Done{};
}

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
  options.widths.clear();
  for (std::size_t at = 0; at <= given.size();) {
    const std::size_t end = std::min(given.find(',', at), given.size());
    const auto width = cli::parse_number("--column-widths", given.substr(at, end - at), 0, kMostWidth);
    if (!width) return width.error();
    options.widths.push_back(*width);
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
      options.sort));
  rows.push_back(cli::text("-F,--fields", "COLUMNS",
                           "the columns, in this order: keys and the names below. A + before the first adds "
                           "to the default columns: " +
                               weight_column_names(),
                           options.fields));
  rows.push_back(flag("-H,--hierarchy",
                      "print a tree of rows: one level for each key of --sort; keys in braces share one: -s "
                      "'{comm,pid},dso,sym'. Implies --no-children",
                      options.has_levels));
  rows.push_back(flag("--latency",
                      "columns and order by wall-clock time, which N threads that run at once share (for "
                      "captures with --switch-events)",
                      options.prefers_latency));
  rows.push_back(flag("-n,--show-nr-samples", "a column with the number of samples", options.shows_samples));
  rows.push_back(flag("--show-total-period", "a column with the period", options.shows_period));
  rows.push_back(flag("--show-cpu-utilization", "columns with the shares of kernel code and user code",
                      options.shows_modes));
  rows.push_back({"--time-quantum", Takes::Value, "TIME", "the interval of the key time (default: 100ms)",
                  [&options](std::string_view given) -> Result<> {
                    auto quantum = parse_time_quantum(given);
                    if (!quantum) return quantum.error();
                    options.time_quantum = *quantum;
                    return Done{};
                  }});
  rows.push_back(flag("--ns", "print times in nanoseconds", options.has_nanoseconds));
  rows.push_back(
      flag("--full-source-path", "source lines have the full paths of files", options.has_folders));
  rows.push_back(
      flag("--raw-trace", "print tracepoints as fields, not by their print format", options.is_raw_trace));
}

void add_mode_options(std::vector<cli::Option>& rows, ReportOptions& options) {
  rows.push_back(
      sets("-b,--branch-stack",
           "rows are branches; each branch counts as one. The default for captures with branch stacks",
           options.counts_branches, true));
  rows.push_back(sets("--no-branch-stack", "rows are samples, even if the capture has branch stacks",
                      options.counts_branches, false));
  rows.push_back(flag("--branch-history",
                      "rows are samples (default keys: srcline,symbol,dso). Their call graphs include the "
                      "branches before each sample, by address, with how each went",
                      options.has_branch_history));
  rows.push_back(flag("--total-cycles",
                      "with rows of branches: list blocks of code, from the target of a branch to the next "
                      "branch, by the cycles that the processor counted",
                      options.shows_cycles));
  rows.push_back(flag("--mem-mode",
                      "rows are memory accesses, weighted by the cost that the processor reported",
                      options.is_mem_mode));
}

constexpr std::string_view kBareGraph = "graph,0.5,caller,function,percent";  // -g without a value

void add_graph_options(std::vector<cli::Option>& rows, ReportOptions& options) {
  rows.push_back(sets("--children",
                      "a function also counts the samples of its callees (the default with call chains)",
                      options.wants_children, true));
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
                           options.ignored_callees));
  rows.push_back({"-p,--parent", Takes::Value, "REGEX",
                  "add the key parent: the first function with such a name in a call chain",
                  [&options](std::string_view given) -> Result<> {
                    options.parent = given;
                    return Done{};
                  }});
  rows.push_back(sets("-x,--exclude-other", "with --parent: only rows with such a function",
                      options.shows_only_with_parent, true));
  rows.push_back(sets("--no-exclude-other", "with --parent: also rows without one (the default)",
                      options.shows_only_with_parent, false));
}

void add_row_options(std::vector<cli::Option>& rows, ReportOptions& options) {
  rows.push_back(event_option(options.reading.session.filter));
  add_filter_options(rows, options.filter);
  rows.push_back({"--socket-filter", Takes::Value, "N",
                  "only samples of this socket, by its number in the header",
                  [&options](std::string_view given) -> Result<> {
                    const auto number = cli::parse_number("--socket-filter", given, 0, 65535);
                    if (!number) return number.error();
                    options.socket = static_cast<std::uint32_t>(*number);
                    return Done{};
                  }});
  rows.push_back({"--parallelism", Takes::Value, "LIST",
                  "only samples during which this number of threads of the command ran: 1,2-4",
                  [&options](std::string_view given) -> Result<> {
                    auto list = parse_number_list("--parallelism", given);
                    if (!list) return std::move(list.error());
                    if (std::ranges::find(*list, 0U) != list->end())
                      return use_error("--parallelism: at least 1: the thread of a sample runs itself");
                    options.parallelism = std::move(*list);
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
         options.percent_limit = std::strtof(text.c_str(), &rest);
         if (rest == text.c_str() || *rest != '\0')
           return use_error("--percent-limit: '" + text + "' is no number; write percents as 0.5");
         options.graph.min_percent = options.percent_limit;
         return Done{};
       }});
  rows.push_back({"--percentage", Takes::Value, "OF",
                  "relative: shares of the filtered total; absolute: shares of the whole total (the default)",
                  [&options](std::string_view given) -> Result<> {
                    if (given != "relative" && given != "absolute") {
                      return use_error("--percentage: '" + std::string(given) +
                                       "' is not known; it is relative or absolute");
                    }
                    options.is_relative = given == "relative";
                    return Done{};
                  }});
  rows.push_back(
      cli::number("--top", "N", "only the first N rows of each table", 1, ~std::uint32_t{0}, options.top));
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
  rows.push_back(cli::text("-t,--field-separator", "SEP", "separate columns by SEP, without alignment",
                           options.separator));
  rows.push_back({"-w,--column-widths", Takes::Value, "N,N",
                  "set the widths of columns; 0: as wide as needed",
                  [&options](std::string_view given) { return set_widths(options, given); }});
  rows.push_back(wide_option("--wide", options.reading));
  rows.push_back(flag("-q,--quiet", "rows only", options.is_quiet));
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
  rows.push_back(flag("--header", "print the capture's header first", options.header));
  rows.push_back(flag("--header-only", "print the capture's header and nothing else", options.header_only));
  rows.push_back(sets("-I,--show-info", "with --header: also topology, caches and memory of the host",
                      options.detail, HeaderDetail::Full));
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
                      options.dumps_records));
  rows.push_back(flag("--stats", "only count records by type and samples by event", options.stats));
  rows.push_back(flag("--tasks", "only list threads, below their parents", options.shows_tasks));
  rows.push_back(flag("--mmaps", "as --tasks, with the mappings of each process", options.shows_maps));
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
                            {!separator.empty(), "-t"},
                            {!widths.empty(), "-w"},
                            {dumps_records, "-D"},
                            {stats, "--stats"},
                            {shows_tasks, "--tasks"},
                            {shows_maps, "--mmaps"},
                            {header_only, "--header-only"},
                            {header, "--header"},
                            {has_levels, "--hierarchy"},
                            {shows_cycles, "--total-cycles"},
                            {shows_thread_values, "-T"},
                            {is_verbose, "-v"}},
                           is_quiet, colour, reading);
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
  return line;
}

namespace {

bool any_samples(const Session& session, abi::SampleType bit) {
  return std::ranges::any_of(session.events(), [bit](const auto& event) { return event.attr.samples(bit); });
}

}  // namespace

// As perf, where a header with branch stacks makes -b the default; in a pipe the header comes too late. If no
// event has branch stacks, such a header is damaged, and samples are shown.
ReportMode mode_of(const Session& session, const ReportOptions& options) {
  if (options.waits.is_asked_for) return ReportMode::Samples;
  if (options.is_mem_mode) return ReportMode::Memory;
  if (options.has_branch_history) return ReportMode::Samples;
  const bool has_branches = !session.layout().is_pipe && session.features().environment.has_branch_stack &&
                            any_samples(session, abi::kSampleBranchStack);
  return options.counts_branches.value_or(has_branches) ? ReportMode::Branches : ReportMode::Samples;
}

Result<> check_mode(const Session& session, const ReportOptions& options, ReportMode mode) {
  const bool asks_for_others = options.is_mem_mode || options.has_branch_history || options.shows_cycles ||
                               options.counts_branches.value_or(false) || options.shows_other_chains;
  if (options.waits.is_asked_for && asks_for_others)
    return use_error(
        "--off-cpu: rows are of waits; leave -b, --branch-history, --total-cycles, --mem-mode and "
        "--show-ref-call-graph out");
  const bool chooses_events = !options.weight.empty() || !options.reading.session.filter.events.empty();
  if (options.waits.is_asked_for && chooses_events)
    return use_error(
        "--off-cpu: rows are weighted by time, whatever the event; leave --weight and --event out");
  if (options.shows_only_with_parent && !options.parent && !options.reading.perf_bytes.is_asked_for)
    return use_error("-x: rows are of the functions of --parent; give --parent too");
  if (options.is_mem_mode && options.counts_branches.value_or(false))
    return use_error("--mem-mode: rows are of memory accesses or of branches (-b), not of both");
  constexpr std::uint64_t kCallStack = 1U << 11;  // PERF_SAMPLE_BRANCH_CALL_STACK
  const bool has_lbr = std::ranges::any_of(session.events(), [](const format::Event& event) {
    return event.attr.samples(abi::kSampleBranchStack) && (event.attr.branch_sample_type & kCallStack) != 0;
  });
  if (options.stitches_lbr && has_lbr)
    return use_error("--stitch-lbr: call stacks that the processor kept (LBR) are taken as recorded");
  if (mode == ReportMode::Branches && !any_samples(session, abi::kSampleBranchStack))
    return use_error("-b: the capture has no branch stacks; perf record -b records them");
  if (mode == ReportMode::Memory && !any_samples(session, abi::kSampleDataSrc))
    return use_error("--mem-mode: the capture has no data sources; perf mem record does");
  if (options.shows_cycles && options.is_for_programs())
    return use_error("--total-cycles: blocks are printed as text only; leave out --json and --csv");
  if (options.has_branch_history && !any_samples(session, abi::kSampleBranchStack))
    return use_error("--branch-history: the capture has no branch stacks; perf record -b records them");
  return Done{};
}

bool keeps_every_branch(const Session& session) {
  constexpr std::uint64_t kAny = 1U << 3;  // PERF_SAMPLE_BRANCH_ANY
  return std::ranges::any_of(session.events(), [](const format::Event& event) {
    return (event.attr.branch_sample_type & kAny) != 0;
  });
}

// As perf, which shows how branches went if the header has branches and no stack copies were recorded.
// Without call chains, branches are the only thing to show.
BranchHistory branch_history_of(const Session& session, const ReportOptions& options) {
  BranchHistory history;
  history.is_wanted = (options.has_branch_history || options.graph.adds_branches) &&
                      !options.waits.is_asked_for && any_samples(session, abi::kSampleBranchStack);
  const bool is_in_header = !session.layout().is_pipe && session.features().environment.has_branch_stack &&
                            !any_samples(session, abi::kSampleStackUser);
  history.shows_counts = history.is_wanted && options.has_branch_history &&
                         (is_in_header || !has_stacks(session.events(), session.features()));
  return history;
}

namespace {

bool holds(const auto& list, const auto& item) {
  return list.empty() || std::ranges::find(list, item) != list.end();
}

}  // namespace

FilterBits filters_of(const ReportOptions& options) {
  const Filter& f = options.filter;
  FilterBits filters = 0;
  if (!f.comms.empty() || !f.pids.empty() || !f.tids.empty()) filters |= kByThread;
  if (!f.dsos.empty()) filters |= kByModule;
  if (!f.symbols.empty()) filters |= kBySymbol;
  if (options.socket) filters |= kBySocket;
  if (!options.parallelism.empty()) filters |= kByParallelism;
  return filters;
}

std::function<FilterBits(const ProfileRow&, const Function&)> row_filter(const ReportOptions& options,
                                                                         const FilteredRows& rows) {
  if (filters_of(options) == 0) return {};
  return [&options, rows, addresses = WantedAddresses(options.filter)](const ProfileRow& row,
                                                                       const Function& counted) {
    const Filter& f = options.filter;
    const auto facts = rows.profile->facts(row);
    // A branch is filtered by the address of its sample.
    const Function& function =
        rows.branches != nullptr
            ? (*rows.functions)[rows.functions->of_location(rows.branches->known(facts).own)]
            : counted;
    const std::string_view path = function.module == nullptr ? std::string_view() : function.module->path;
    const std::string_view name =
        function.module == nullptr ? std::string_view() : function.module->short_name;
    const auto has_address = [&](const ProfileRow& of) {
      return !addresses.empty() && addresses.has(rows.resolver->location(of.location).ip.value);
    };
    FilterBits refused = 0;
    if (!holds(f.comms, row.comm()) || !holds(f.pids, row.thread->pid) || !holds(f.tids, row.thread->tid))
      refused |= kByThread;
    if (!holds(f.dsos, name) && !holds(f.dsos, path)) refused |= kByModule;
    const bool is_named = holds(f.symbols, function.name()) || holds(f.symbols, function.shown_name());
    if (!is_named && !has_address(row)) refused |= kBySymbol;
    if (options.socket && facts[rows.socket_fact] != *options.socket) refused |= kBySocket;
    if (!options.parallelism.empty() && !holds(options.parallelism, facts[rows.parallelism_fact]))
      refused |= kByParallelism;
    return refused;
  };
}

std::vector<Column> single_value_columns(const ReportOptions& options, const ReportColumns& columns) {
  std::vector<Column> single;
  for (const Column& column : columns.shown) {
    if (column.kind != Column::Kind::Key) continue;
    const std::string_view name = columns.keys[column.key].key->name;
    if ((name == "comm" && options.filter.comms.size() == 1) ||
        (name == "dso" && options.filter.dsos.size() == 1) ||
        (name == "symbol" && options.filter.symbols.size() == 1)) {
      single.push_back(column);
    }
  }
  return single.size() == columns.keys.size() ? std::vector<Column>() : single;
}

bool names_key_with(const ReportOptions& options, SortKey::Needs needs) {
  return any_word(options, [needs](std::string_view word) {
    const SortKey* const key = sort_key_of(word);
    return key != nullptr && key->needs == needs;
  });
}

bool needs_source_lines(const ReportOptions& options) {
  return options.graph.key != ChainKey::Function || options.shows_cycles ||
         names_key_with(options, SortKey::Needs::SourceLines);
}

bool asks_for_parallelism(const ReportOptions& options) {
  const auto is_latency_column = [](std::string_view word) {
    const WeightColumn* const column = weight_column_of(word);
    return column != nullptr && is_latency(column->kind);
  };
  return options.prefers_latency || !options.parallelism.empty() || any_word(options, is_latency_column) ||
         names_key_with(options, SortKey::Needs::Switches);
}

bool shows_latency(const ReportColumns& columns) {
  return std::ranges::any_of(columns.shown, [](const Column& column) { return is_latency(column.kind); });
}

Result<> check_switches(const Session& session, const ReportColumns& columns, const ReportOptions& options) {
  const bool has_key =
      std::ranges::any_of(columns.keys, [](const KeyUse& use) { return use.key->name == "parallelism"; });
  if (!has_key && !shows_latency(columns) && options.parallelism.empty()) return Done{};
  const bool has_switches = std::ranges::any_of(
      session.events(), [](const format::Event& event) { return event.attr.has(abi::kContextSwitch); });
  if (has_switches) return Done{};
  return use_error(
      "--latency, --parallelism and the keys latency and parallelism need to know when threads ran; record "
      "with --switch-events (perf 7: --latency) to have that");
}

std::function<Weight(const ProfileRow&, const Weight&)> weighed_by_latency(const Profile& profile,
                                                                           std::size_t fact) {
  return [&profile, fact](const ProfileRow& row, const Weight& weight) {
    return Weight{weight.period / std::max<std::uint64_t>(profile.facts(row)[fact], 1), weight.samples};
  };
}

}  // namespace tacho::report
