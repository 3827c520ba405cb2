// The command line of `tacho report`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/command.h"
#include "report/output/terminal.h"
#include "report/perf_text/header_text.h"
#include "report/profile/branches.h"
#include "report/profile/entries.h"
#include "report/profile/named_rows.h"
#include "report/profile/profile.h"
#include "report/profile/sample_facts.h"
#include "report/query/waits.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"
#include "report/samples/session.h"
#include "report/views/report/task_list.h"

namespace tacho::report {

// The options that decide the columns.
struct ColumnRequest {
  std::string sort, fields;  // as given; empty: not given
  bool has_children = false;
  bool shows_modes = false;      // --show-cpu-utilization
  bool shows_samples = false;    // -n
  bool shows_period = false;     // --show-total-period
  bool prefers_latency = false;  // --latency
  bool has_parent = false;       // --parent: its key is after the others
  bool has_ipc = true;           // rows by symbol have perf's column IPC, which is mostly empty
};

// The keys, columns and row order of a report, from --sort and --fields.
struct ReportColumns {
  std::vector<KeyUse> keys;
  std::vector<Column> shown, sorted;
  // With --hierarchy: the level of each column of `sorted`; columns of equal number share a level. 0: on the
  // left, not a level.
  std::vector<std::size_t> levels;
  bool has_usual_weights = false;  // the default weight columns are shown
  std::string sort;                // as given, with what perf adds; empty: the default

  bool shows_modes() const;  // whether columns split weights into kernel, user and guests
};

// The default sort keys of --mem-mode.
constexpr std::string_view kMemorySort =
    "local_weight,mem,sym,dso,symbol_daddr,dso_daddr,snoop,tlb,locked,blocked,local_ins_lat,"
    "local_p_stage_cyc";

// The columns, in perf's order: weights, then the keys of --sort; or as listed by --fields. Rows are sorted
// by all shown columns. The capture's events must be known.
Result<ReportColumns> make_columns(const ColumnRequest& request, SampleFacts& facts);

// "Overhead"; for a key, the heading of that key.
std::string header_of(const Column& column, const ReportColumns& columns, bool has_children);

// Whether both are the same key of the same event and field.
bool is_same_key(const KeyUse& a, const KeyUse& b);

// The meaning of -g: how the call graph below a row is drawn.
enum class GraphForm : std::uint8_t {
  None,
  Graph,    // a tree; shares are of the event's total
  Fractal,  // a tree; shares are of the node above
  Flat,     // each chain, one frame a line
  Folded,   // each chain on a line
};
enum class GraphValue : std::uint8_t { Percent, Period, Count };

struct GraphOptions {
  GraphForm form = GraphForm::Graph;
  double min_percent = 0.5;
  std::uint32_t print_limit = 0;  // entries of a level; 0: all
  ChainOrder order = ChainOrder::Callee;
  bool is_order_given = false;  // else: Caller with --children
  ChainKey key = ChainKey::Function;
  GraphValue value = GraphValue::Percent;
  bool adds_branches = false;  // the word "branch"
};

// Parses "graph,0.5,caller,function,percent": words in any order, each abbreviated as perf allows. The first
// number is the threshold, the second the print limit. Changes only the options that the text names.
Result<> parse_graph_options(std::string_view text, GraphOptions& options);

enum class ReportForm : std::uint8_t { Text, Json, Csv };
// Best: the interactive view on a terminal, else text.
enum class ReportFace : std::uint8_t { Best, Text, Screen };

struct ReportOptions {
  ReadingOptions reading;
  std::string sort, fields;
  bool wants_children = true;
  GraphOptions graph;
  bool asks_for_graph = false, is_inverted = false;
  bool begins_with_caller() const {  // call graphs
    return is_inverted || (graph.is_order_given ? graph.order == ChainOrder::Caller : wants_children);
  }
  bool has_levels = false;              // --hierarchy
  std::optional<bool> counts_branches;  // -b; nullopt: yes for captures with branches
  bool has_branch_history = false;
  bool shows_cycles = false;        // --total-cycles: blocks of code instead of rows of branches
  bool shows_other_chains = false;  // --show-ref-call-graph
  bool is_mem_mode = false;
  ReportForm form = ReportForm::Text;
  ReportFace face = ReportFace::Best;
  // The first option that affects text output only; empty: none was given.
  std::string_view text_option() const;
  bool is_for_programs() const { return form != ReportForm::Text; }
  bool shows_samples = false, shows_period = false, shows_modes = false;
  std::string separator;
  std::vector<std::size_t> widths;
  double percent_limit = 0;
  bool is_relative = false;
  bool is_quiet = false, is_verbose = false;
  bool hides_unknown = false;
  std::optional<std::string> parent;  // a regular expression
  bool shows_only_with_parent = false;
  std::string ignored_callees;  // likewise
  // Rows of refused samples are hidden, but count in the total (100 %).
  Filter filter;
  SwitchOptions switches;
  std::optional<std::uint32_t> socket;
  std::vector<std::uint32_t> parallelism;  // --parallelism; empty: any
  bool prefers_latency = false;            // --latency
  bool is_raw_trace = false, has_nanoseconds = false;
  std::uint64_t time_quantum = 100'000'000;  // ns
  bool shows_thread_values = false;          // -T
  ValueForm value_form = ValueForm::Table;   // of -T
  Grouping grouping = Grouping::AsRecorded;
  std::uint64_t first_member = 0;  // --group-sort-idx
  bool shows_tasks = false, shows_maps = false;
  bool stitches_lbr = false;
  bool has_folders = false;  // --full-source-path
  bool header = false, header_only = false;
  HeaderDetail detail = HeaderDetail::Brief;
  bool stats = false;
  bool dumps_records = false;  // -D
  std::size_t top = 0;
  Colour colour = Colour::Auto;
  bool is_interactive = false;  // rows are for the interactive view: zooms, other orders, code
  std::string shown_times;      // replaces the time slices in titles; empty: it does not
  bool is_live = false;         // a recorder still writes the capture, into a pipe
  bool hides_idle = false;      // samples of the kernel's idle loop, as perf top does
  WaitOptions waits;
  std::string weight;  // empty: the field tagged role:weight, else the period
};

cli::CommandLine describe_report(ReportOptions& options);

// What the rows of a report count.
ReportMode mode_of(const Session& session, const ReportOptions& options);

// An error if options contradict each other, or the capture lacks what they need.
Result<> check_mode(const Session& session, const ReportOptions& options, ReportMode mode);

// Whether the processor recorded all branches, not only some kinds.
bool keeps_every_branch(const Session& session);

// What --branch-history and -g branch show of a capture.
struct BranchHistory {
  bool is_wanted = false;     // call chains contain branches
  bool shows_counts = false;  // graphs show prediction, cycles and iterations of branches
};
BranchHistory branch_history_of(const Session& session, const ReportOptions& options);

// The rows that filters test, and where the tested values are in their facts.
struct FilteredRows {
  const Profile* profile = nullptr;
  Resolver* resolver = nullptr;
  FunctionTable* functions = nullptr;
  const BranchRows* branches = nullptr;  // null: rows are not of branches
  std::size_t socket_fact = 0, parallelism_fact = 0;
};

// All filters that may refuse a row.
FilterBits filters_of(const ReportOptions& options);
// The filters that refuse a row; null: there are no filters. The arguments must outlive the result.
std::function<FilterBits(const ProfileRow&, const Function&)> row_filter(const ReportOptions& options,
                                                                         const FilteredRows& rows);
// perf hides a column if a filter leaves it a single value.
std::vector<Column> single_value_columns(const ReportOptions& options, const ReportColumns& columns);

// Whether --sort or --fields names a key that needs this, in full or abbreviated. Fields of events need
// nothing.
bool names_key_with(const ReportOptions& options, SortKey::Needs needs);
// Whether an option needs records of context switches, as far as options tell before there are columns.
bool asks_for_parallelism(const ReportOptions& options);
// Whether sort keys, columns or call graphs have source lines.
bool needs_source_lines(const ReportOptions& options);
bool shows_latency(const ReportColumns& columns);
// An error if an option needs context switches and the capture has none.
Result<> check_switches(const Session& session, const ReportColumns& columns, const ReportOptions& options);

// The weight of a row by latency (perf report --latency): while N threads of a command run at once, a second
// of CPU time is 1/N second of latency. `fact`: the position of its parallelism in the facts. The profile
// must outlive the result.
std::function<Weight(const ProfileRow&, const Weight&)> weighed_by_latency(const Profile& profile,
                                                                           std::size_t fact);

}  // namespace tacho::report
