// What a report needs of a capture whose events are known: its columns, the profile that samples fill, and
// the tables of names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/profile/block_cycles.h"
#include "report/profile/branch_rows.h"
#include "report/profile/branches.h"
#include "report/profile/named_rows.h"
#include "report/profile/profile.h"
#include "report/profile/wait_chains.h"
#include "report/profile/weight.h"
#include "report/query/waits.h"
#include "report/samples/event_choice.h"
#include "report/samples/sum_view.h"
#include "report/views/report/report_columns.h"
#include "report/views/report/report_mode.h"
#include "report/views/report/report_options.h"

namespace tacho::report {

// `options`: those whose keys are asked for.
ColumnRequest column_request(const ReportOptions& options, ReportMode mode, bool has_children);

struct ReportPlan;
// For the session's events; both must outlive it. `needs_records`: whether rows need records other than
// samples. `early`: facts of the records before the events were known. An error names a wrong option.
Result<std::unique_ptr<ReportPlan>> make_report_plan(Session& session, const ReportOptions& options,
                                                     ReportMode mode, bool needs_records, RecordFacts early);

struct ReportPlan {
  ReportPlan(const ReportPlan&) = delete;
  ReportPlan& operator=(const ReportPlan&) = delete;
  ~ReportPlan() = default;

  bool has_key(std::string_view name) const {
    return std::ranges::any_of(columns.keys, [&](const KeyUse& use) { return use.key->name == name; });
  }
  bool has_key_of(KeyOf of) const {
    return std::ranges::any_of(columns.keys, [of](const KeyUse& use) { return use.key->of == of; });
  }
  Sink::MergeBy merge_by() const;
  // Whether lanes can sum the samples: rows and weights depend only on the addresses of samples.
  bool is_of_sums() const;
  // Before the first look-up of a name. In a pipe, after the run: a pipe lists its modules at its end.
  void make_names();

  Session* session;
  const ReportOptions* options;
  ReportMode mode;
  bool needs_records;
  BranchHistory history;
  std::vector<format::EventGroup> groups;  // of more than one event, by leader
  EventSwitch event_switch;
  SampleFacts facts;
  ReportColumns columns;
  bool has_chains = false, has_children = false, has_graph = false;
  bool names_chains_late = false;  // call chains are named only for graphs that are drawn
  GraphOptions graph;
  std::optional<BranchRows> branches;         // when rows are of branches
  std::optional<BlockCycles> cycles;          // with --total-cycles
  std::optional<BranchChains> branch_chains;  // if call chains have branches
  std::optional<Waits> waits;                 // --off-cpu: rows are waits
  std::optional<WaitChains> wait_chains;      // the same
  std::size_t socket_fact = 0;                // with --socket-filter: its position in a row's facts
  std::size_t parallelism_fact = 0;           // the same, for --parallelism or a latency column
  bool has_facts = false;                     // rows are distinguished by facts of samples
  SumShape sum_shape;
  std::optional<Profile> profile;
  std::optional<WeightChoice> weight;
  std::optional<FunctionTable> functions;  // this and the next two: see make_names()
  std::optional<FunctionStacks> stacks;
  std::optional<NamedRows> names;

 private:
  friend Result<std::unique_ptr<ReportPlan>> make_report_plan(Session& session, const ReportOptions& options,
                                                              ReportMode mode, bool needs_records,
                                                              RecordFacts early);
  ReportPlan(Session& of, const ReportOptions& with, ReportMode by, bool reads_records, RecordFacts early);
  Result<> choose_columns();
  Result<> make_profile();
  Result<> find_waits();
  bool needs_names() const;
  bool merges_chains() const;
  bool can_name_chains_late() const;
};

}  // namespace tacho::report
