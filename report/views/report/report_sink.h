// The sink of `tacho report`: fills a profile while samples come, and makes its rows at the end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/profile/branches.h"
#include "report/profile/weight.h"
#include "report/samples/sums.h"
#include "report/views/report/graph_options.h"
#include "report/views/report/report_columns.h"
#include "report/views/report/report_forms.h"
#include "report/views/report/report_mode.h"
#include "report/views/report/report_options.h"
#include "report/views/report/report_text.h"
#include "report/views/report/task_list.h"

namespace tacho::report {

class ReportSink : public Sink, private SumView {
 public:
  // Both must outlive this.
  ReportSink(Session& session, const ReportOptions& options, bool has_colour);

  // Prepares for the session's events. An error names a wrong option.
  Result<> arrange();
  bool is_arranged() const { return profile_.has_value() || failure_; }

  bool takes_non_samples() const override { return needs_records_ || !plan_; }
  MergeBy merge_by() const override;
  SumView* sum_view() override;

  Flow on_sample(const ResolvedSample& sample) override;
  Flow on_non_sample(const NonSampleRecord& other) override {
    if (plan_)
      plan_->facts.take(*other.record);
    else
      early_.take(*other.record);
    if (options_->shows_thread_values) values_.add(other);
    return Flow::Continue;
  }

  // The error if an option turned out to be wrong when samples came.
  std::optional<Error> failure() const;
  bool has_key(std::string_view name) const {
    return plan_ &&
           std::ranges::any_of(plan_->columns.keys, [&](const KeyUse& use) { return use.key->name == name; });
  }
  bool has_key_of(KeyOf of) const {
    return plan_ &&
           std::ranges::any_of(plan_->columns.keys, [of](const KeyUse& use) { return use.key->of == of; });
  }
  // Lines for stderr.
  std::vector<std::string> notes() const;
  // Lines about names of --comms, --dsos and --symbols that no sample has. After the rows were settled.
  std::vector<std::string> unmatched_names() const;
  bool empty() const { return !profile_ || profile_->rows().size() == 0; }
  void report(format::Diagnostics& diagnostics) const {
    if (plan_) plan_->facts.report(diagnostics);
    if (weight_) weight_->unweighed().report(diagnostics);
  }
  void write_single_values(TextOutput& out) const;
  void write(TextOutput& out);

  // For a view that continues after the run, instead of write(). Call it first, after the run.
  void settle();
  // Before the run ends: whether the rows so far may be shown, after settle_early().
  bool can_settle_early() const { return profile_ && mode_ == ReportMode::Samples && !waits_; }
  void settle_early();
  Session& session() const { return *session_; }
  const Profile& profile() const { return *profile_; }
  const NamedRows& names() const { return *plan_->names; }
  FunctionTable& functions() const { return *plan_->functions; }
  SampleFacts& facts() const { return plan_->facts; }
  const ReportColumns& columns() const { return plan_->columns; }
  // The columns for other sort keys; nullopt: the profile lacks a fact that a key needs. An error names a
  // wrong key.
  Result<std::optional<ReportColumns>> columns_of(const std::string& sort) const;
  EntryOptions entry_options(std::uint32_t block) const;
  TextOptions text_options() const;
  // "Samples: 12K of event 'cycles'", and what they sum up to.
  struct Title {
    std::string samples, count;
  };
  Title title(const EventBlock& block, const Entries& entries, bool is_relative) const;

 private:
  SumShape shape() const override;
  RowId row_of(const SumGroup& row) override;
  void count(RowId row, std::size_t event, std::uint64_t period, std::uint64_t samples) override;
  // Made when the events are known; for a pipe, at its first sample.
  struct Plan {
    SampleFacts facts;
    ReportColumns columns;
    bool has_chains = false, has_children = false, has_graph = false;
    bool names_chains_late = false;  // call chains are named only for graphs that are drawn
    GraphOptions graph;
    std::optional<BranchRows> branches{};         // when rows are of branches
    std::optional<BlockCycles> cycles{};          // with --total-cycles
    std::optional<BranchChains> branch_chains{};  // if call chains have branches
    std::optional<WaitChains> wait_chains{};      // if rows are waits
    // For a pipe they are made after the run: a pipe lists its modules at its end.
    std::optional<FunctionTable> functions{};
    std::optional<FunctionStacks> stacks{};
    std::optional<NamedRows> names{};
  };
  void make_names();
  bool needs_names() const;
  bool can_name_chains_late() const;
  bool merges_chains() const;
  bool borrows_chains(const EventBlock& block) const;
  void add_sample(const ResolvedSample& sample, std::uint64_t weight);
  void add_wait(const Wait& wait);
  Result<> find_waits();
  ColumnRequest request_of(bool has_children) const;
  void write_title(TextOutput& out, const EventBlock& block, const Entries& entries,
                   const Hierarchy* hierarchy) const;
  // The group that an event leads; null: none.
  const format::EventGroup* group_of(std::size_t leader) const;
  EntryOptions entry_options(FunctionTable& functions) const;
  void write_levels(TextOutput& out, const EventBlock& block, const Entries& entries,
                    const HierarchyText& text) const;
  std::unique_ptr<RowForm> make_form(TextOutput& out, const FunctionTable& functions, CallTree& tree,
                                     const TextOptions& text) const;
  void count_branches(const Entries& entries, BranchStatistics& statistics) const;

  Session* session_;
  const ReportOptions* options_;
  std::unique_ptr<Plan> plan_;
  RecordFacts early_;  // before there is a plan
  std::optional<Profile> profile_;
  bool has_facts_ = false;  // rows are distinguished by facts of samples
  SumShape sum_shape_;
  std::optional<WeightChoice> weight_;
  std::vector<format::EventGroup> groups_;  // of more than one event, by leader
  EventSwitch switch_;
  std::optional<Waits> waits_;        // --off-cpu
  std::size_t socket_fact_ = 0;       // with --socket-filter: its position in a row's facts
  std::size_t parallelism_fact_ = 0;  // the same, for --parallelism or a latency column
  std::optional<Error> failure_;
  const Stack* last_stack_ = nullptr;  // with --show-ref-call-graph: of the last sample with a stack
  ThreadValues values_;
  bool has_colour_;
  ReportMode mode_;
  BranchHistory history_;
  bool needs_records_;  // whether it needs other records than samples
};

}  // namespace tacho::report
