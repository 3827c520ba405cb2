// The options of `tacho report`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "report/command.h"
#include "report/output/terminal.h"
#include "report/perf_text/header_text.h"
#include "report/profile/sample_facts.h"
#include "report/query/waits.h"
#include "report/samples/event_choice.h"
#include "report/views/report/graph_options.h"
#include "report/views/report/report_columns.h"
#include "report/views/report/report_text.h"
#include "report/views/report/row_filters.h"
#include "report/views/report/task_list.h"

namespace tacho::report {

enum class ReportForm : std::uint8_t { Text, Json, Csv };
// Best: the interactive view on a terminal, else text.
enum class ReportFace : std::uint8_t { Best, Text, Screen };

// Branch stacks in rows and call chains.
struct BranchOptions {
  std::optional<bool> are_rows;  // -b; nullopt: yes for captures with branches
  bool extend_chains = false;    // --branch-history
  bool shows_cycles = false;     // --total-cycles: blocks of code instead of rows of branches
};

// Functions in call chains, by regular expressions.
struct ChainPatterns {
  std::optional<std::string> parent;
  bool has_parent_only = false;  // -x
  std::string ignored_callees;   // empty: none
};

struct HeaderOptions {
  bool is_shown = false, is_alone = false;  // --header, --header-only
  HeaderDetail detail = HeaderDetail::Brief;
};

// What is listed in place of rows.
struct ListOptions {
  bool records = false, stats = false;  // -D, --stats
  bool tasks = false, maps = false;     // --tasks, --mmaps
};

// Set by the interactive view and tacho top.
struct ReportViewOptions {
  bool is_interactive = false;  // the view zooms, sorts by other keys, shows code
  bool is_live = false;         // a recorder still writes the capture, into a pipe
  bool hides_idle = false;      // samples of the kernel's idle loop, as perf top does
  std::string shown_times;      // replaces the time slices in titles; empty: it does not
};

struct ReportOptions {
  ReportOptions() { reading.session.max_stack = kDeepestOfPerf; }

  ReadingOptions reading;
  ColumnOptions columns;
  FactOptions facts;  // as far as they are given
  bool wants_children = true, asks_for_children = false;
  GraphOptions graph;
  bool asks_for_graph = false, is_inverted = false;
  bool begins_with_caller() const {  // call graphs
    return is_inverted || (graph.is_order_given ? graph.order == ChainOrder::Caller : wants_children);
  }
  bool matches_calls = true;  // of a comparison: functions with equal callers and callees are one
  bool has_levels = false;    // --hierarchy
  BranchOptions branches;
  ChainPatterns chains;
  bool shows_other_chains = false;  // --show-ref-call-graph
  bool stitches_lbr = false;
  bool is_mem_mode = false;
  WaitOptions waits;
  std::string weight;  // empty: the field tagged role:weight, else the period
  RowFilters filter;
  bool hides_unknown = false;
  SwitchOptions switches;
  Grouping grouping = Grouping::AsRecorded;
  std::uint64_t first_member = 0;  // --group-sort-idx
  RowLook look;
  Colour colour = Colour::Auto;
  bool is_verbose = false;
  bool has_folders = false;                 // --full-source-path
  bool shows_thread_values = false;         // -T
  ValueForm value_form = ValueForm::Table;  // of -T
  HeaderOptions header;
  ListOptions lists;
  ReportForm form = ReportForm::Text;
  bool is_for_programs() const { return form != ReportForm::Text; }
  ReportFace face = ReportFace::Best;
  ReportViewOptions view;
  // The first option that affects text output only; empty: none was given.
  std::string_view text_option() const;
};

cli::CommandLine describe_report(ReportOptions& options);

}  // namespace tacho::report
