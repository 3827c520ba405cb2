// The rows of a report whose samples were read: their columns, names and totals, and what writes them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "report/views/report/branch_text.h"
#include "report/views/report/hierarchy_text.h"
#include "report/views/report/report_forms.h"
#include "report/views/report/report_plan.h"
#include "report/views/report/report_text.h"
#include "report/views/report/task_list.h"

namespace tacho::report {

// Made by ReportSink alone, and valid as long as that.
class ReportTable {
 public:
  Session& session() const { return *session_; }
  const Profile& profile() const { return *plan_->profile; }
  const NamedRows& names() const { return *plan_->names; }
  FunctionTable& functions() const { return *plan_->functions; }
  SampleFacts& facts() const { return plan_->facts; }
  const ReportColumns& columns() const { return plan_->columns; }
  // The columns for other sort keys; nullopt: the profile lacks a fact that a key needs. An error names a
  // wrong key.
  Result<std::optional<ReportColumns>> columns_of(const std::string& sort) const;
  EntryOptions entry_options(BlockId block) const;
  TextOptions text_options() const;
  // "Samples: 12K of event 'cycles'", and what they sum up to.
  struct Title {
    std::string samples, count;
  };
  Title title(const EventBlock& block, const Entries& entries, bool is_relative) const;

  // Lines about names of --comms, --dsos and --symbols that no sample has.
  std::vector<std::string> unmatched_names() const;
  // A line for each filter that leaves a key a single value.
  void write_single_values(TextOutput& out) const;
  // All rows. Once: chains that are named late need tables that are freed then.
  void write(TextOutput& out) const;

 private:
  friend class ReportSink;
  ReportTable(ReportPlan& plan, const ThreadValues& values, bool has_colour)
      : plan_(&plan),
        session_(plan.session),
        options_(plan.options),
        values_(&values),
        has_colour_(has_colour) {}

  struct Writer;  // what is made once for all blocks of rows
  void write_block(Writer& to, BlockId block) const;
  void write_title(TextOutput& out, const EventBlock& block, const Entries& entries,
                   const Hierarchy* hierarchy) const;
  void write_levels(TextOutput& out, const EventBlock& block, const Entries& entries,
                    const HierarchyText& text) const;
  std::unique_ptr<RowForm> make_form(TextOutput& out, CallTree& tree, const TextOptions& text) const;
  void count_branches(const Entries& entries, BranchStatistics& statistics) const;
  bool borrows_chains(const EventBlock& block) const;
  // The group that an event leads; null: none.
  const format::EventGroup* group_of(std::size_t leader) const;

  ReportPlan* plan_;
  Session* session_;
  const ReportOptions* options_;
  const ThreadValues* values_;  // of -T
  bool has_colour_;
};

}  // namespace tacho::report
