// The keys and columns of a report, from --sort and --fields.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/profile/entries.h"
#include "report/profile/sample_facts.h"
#include "report/profile/sort_keys.h"

namespace tacho::report {

struct ColumnOptions {
  std::string sort, fields;      // as given; empty: not given
  bool shows_modes = false;      // --show-cpu-utilization
  bool shows_samples = false;    // -n
  bool shows_period = false;     // --show-total-period
  bool prefers_latency = false;  // --latency
};

// All that decides the columns.
struct ColumnRequest {
  ColumnOptions given;
  bool has_children = false;
  bool has_parent = false;  // --parent: its key is after the others
  bool has_ipc = true;      // rows by symbol have perf's column IPC, which is mostly empty
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

// Whether --sort or --fields names a key that needs this, in full or abbreviated. Fields of events need
// nothing.
bool names_key_with(const ColumnOptions& options, SortKey::Needs needs);
// Whether they name a column of latency.
bool names_latency(const ColumnOptions& options);
bool shows_latency(const ReportColumns& columns);
// The names of columns that are not keys, for --help.
std::string weight_column_names();

}  // namespace tacho::report
