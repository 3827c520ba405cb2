// The command line of `tacho report`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/absent_options.h"
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
#include "report/samples/event_switch.h"
#include "report/samples/filter.h"
#include "report/samples/session.h"
#include "report/views/report/task_list.h"

namespace tacho::report {

// What --sort and --fields mean: the keys of a report, its columns, and by what its rows are sorted.

struct ColumnRequest {
  std::string sort, fields;  // as given; empty: not
  bool has_children = false;
  bool shows_modes = false;      // --show-cpu-utilization
  bool shows_samples = false;    // -n
  bool shows_period = false;     // --show-total-period
  bool prefers_latency = false;  // --latency
  bool has_parent = false;       // --parent: its key stands behind the others
  bool has_ipc = true;           // rows by symbol have perf's column of instructions per cycle, mostly empty
};

struct ReportColumns {
  std::vector<KeyUse> keys;
  std::vector<Column> shown, sorted;
  // By column of `sorted`: equal numbers share a level with --hierarchy. 0: not a level of its own.
  std::vector<std::size_t> levels;
  bool has_usual_weights = false;  // those of the columns that were not chosen
  std::string sort;                // as given, with what perf adds to it; empty: the usual

  bool tells_modes() const;  // what was the kernel's and what was not
};

// What --mem-mode sorts by when nothing else is asked for.
constexpr std::string_view kMemorySort =
    "local_weight,mem,sym,dso,symbol_daddr,dso_daddr,snoop,tlb,locked,blocked,local_ins_lat,"
    "local_p_stage_cyc";

// As perf: weights before the keys of --sort unless --fields says all; a column that is shown is sorted by
// too. The events of the capture must be known.
Result<ReportColumns> make_columns(const ColumnRequest& request, SampleFacts& facts);

// "Overhead"; of a key its own.
std::string header_of(const Column& column, const ReportColumns& columns, bool has_children);

// The names of the columns that are no keys, for --help.
std::string weight_column_names();

// Options of perf report that tacho report does not have, and what to do instead.

std::span<const cli::AbsentOption> absent_report_options();

// What -g says: how the call graph below a row of `report` is drawn.

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
  bool is_order_given = false;  // else Caller with --children
  ChainKey key = ChainKey::Function;
  GraphValue value = GraphValue::Percent;
  bool adds_branches = false;  // the word "branch"
};

// "graph,0.5,caller,function,percent": words in any order, each may be cut short as perf allows; the first
// number is the threshold, the second the print limit. Changes what the text names.
Result<> parse_graph_options(std::string_view text, GraphOptions& options);

enum class ReportForm : std::uint8_t { Text, Json, Csv };
// Best: a screen to walk through on a terminal, and text else.
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
  std::optional<bool> counts_branches;  // -b; without a word, those of captures that have them
  bool has_branch_history = false;
  bool shows_cycles = false;        // --total-cycles: blocks of code instead of rows of branches
  bool shows_other_chains = false;  // --show-ref-call-graph
  bool is_mem_mode = false;
  ReportForm form = ReportForm::Text;
  ReportFace face = ReportFace::Best;
  // The first option whose effect is in the text alone; empty: none was given.
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
  // Rows of samples that it refuses are not shown, and count in what 100 % are.
  Filter filter;
  SwitchOptions switches;
  std::optional<std::uint32_t> socket;
  std::vector<std::uint32_t> parallelism;  // --parallelism; empty: any
  bool prefers_latency = false;            // --latency
  bool is_raw_trace = false, has_nanoseconds = false;
  std::uint64_t time_quantum = 100'000'000;  // ns
  bool shows_thread_values = false;          // -T
  ValueForm value_form = ValueForm::Table;   // of these
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
  bool is_walked = false;  // rows are for the terminal's view: zooms, other orders, code
  bool is_live = false;    // of a recording that goes on, through a pipe
  WaitOptions waits;
  std::string weight;  // empty: the field tagged role:weight, else the period
};

cli::CommandLine describe_report(ReportOptions& options);

// What the rows of a report count, by its options and by what the capture holds.

ReportMode mode_of(const Session& session, const ReportOptions& options);

// An error names an option that the capture has nothing for.
Result<> check_mode(const Session& session, const ReportOptions& options, ReportMode mode);

// Whether the processor kept every branch, and not those of some kinds alone.
bool keeps_every_branch(const Session& session);

// What --branch-history and -g branch make of a capture.
struct BranchHistory {
  bool is_wanted = false;     // chains have branches in them
  bool shows_counts = false;  // graphs say how these went
};
BranchHistory branch_history_of(const Session& session, const ReportOptions& options);

// Which rows of a report its options refuse, and the columns that they leave one value.

// Where the rows come from, and where among their facts stands what filters look at.
struct FilteredRows {
  const Profile* profile = nullptr;
  Resolver* resolver = nullptr;
  FunctionTable* functions = nullptr;
  const BranchRows* branches = nullptr;  // null: rows are not of branches
  std::size_t socket_fact = 0, parallelism_fact = 0;
};

// All that may refuse a row.
FilterBits filters_of(const ReportOptions& options);
// Which do; null: there are none. What is passed must outlive it.
std::function<FilterBits(const ProfileRow&, const Function&)> row_filter(const ReportOptions& options,
                                                                         const FilteredRows& rows);
// perf does not show a column whose value a filter leaves no choice.
std::vector<Column> single_value_columns(const ReportOptions& options, const ReportColumns& columns);

// Latency (perf report --latency): the wall-clock time of a sample. While N threads of a command run at once,
// a second of CPU time is 1/N second of latency.

// Whether records of context switches are asked for, which is known before the columns are.
bool asks_for_parallelism(const ReportOptions& options);
bool shows_latency(const ReportColumns& columns);
// An error, where the capture has no context switches and something wants them.
Result<> check_switches(const Session& session, const ReportColumns& columns, const ReportOptions& options);

// What a row counts for in latency. `fact`: where its parallelism stands among the facts. The profile must
// outlive it.
std::function<Weight(const ProfileRow&, const Weight&)> weighed_by_latency(const Profile& profile,
                                                                           std::size_t fact);

}  // namespace tacho::report
