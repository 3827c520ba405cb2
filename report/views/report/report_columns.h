// What --sort and --fields mean: the keys of a report, its columns, and by what its rows are sorted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/profile/entries.h"

namespace tacho::report {

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

}  // namespace tacho::report
