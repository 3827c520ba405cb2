// The options of `tacho report`.
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
#include "report/views/report/graph_options.h"
#include "report/views/report/task_list.h"

namespace tacho::report {

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

}  // namespace tacho::report
