// The sink of `tacho report`: fills a profile while samples come.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "report/samples/sum_view.h"
#include "report/views/report/report_plan.h"
#include "report/views/report/report_table.h"
#include "report/views/report/task_list.h"

namespace tacho::report {

class ReportSink : public Sink, private SumView {
 public:
  // Both must outlive this.
  ReportSink(Session& session, const ReportOptions& options, bool has_colour);

  // Prepares for the session's events. An error names a wrong option. For a pipe, the first sample does it.
  Result<> arrange();
  bool is_arranged() const { return plan_ || failure_; }

  bool takes_non_samples() const override { return needs_records_ || !plan_; }
  MergeBy merge_by() const override { return plan_ ? plan_->merge_by() : MergeBy::Address; }
  // Lanes can sum rows and weights that depend only on the addresses of samples.
  SumView* sum_view() override { return plan_ && plan_->is_of_sums() ? this : nullptr; }

  Flow on_sample(const ResolvedSample& sample) override;
  Flow on_non_sample(const NonSampleRecord& other) override;

  // The error if an option turned out to be wrong when samples came.
  std::optional<Error> failure() const;
  // Lines for stderr.
  std::vector<std::string> notes() const;
  bool empty() const { return !plan_ || plan_->profile->rows().size() == 0; }
  void report(format::Diagnostics& diagnostics) const;
  Session& session() const { return *session_; }

  // The rows of all samples, once the sink is arranged and has them. Valid as long as this.
  const ReportTable& finish();
  // Before the run ends: the rows so far; null: there are none, or they are known only at the end.
  const ReportTable* rows_so_far();

 private:
  SumShape shape() const override;
  RowId row_of(const SumGroup& row) override;
  void count(RowId row, std::size_t event, std::uint64_t period, std::uint64_t samples) override;
  void add_sample(const ResolvedSample& sample, std::uint64_t weight);
  void add_wait(const Wait& wait);

  Session* session_;
  const ReportOptions* options_;
  bool has_colour_;
  ReportMode mode_;
  bool needs_records_;                // whether it needs other records than samples
  RecordFacts early_;                 // before there is a plan
  std::unique_ptr<ReportPlan> plan_;  // made when the events are known; for a pipe, at its first sample
  std::optional<ReportTable> table_;
  std::optional<Error> failure_;
  const Stack* last_stack_ = nullptr;  // with --show-ref-call-graph: of the last sample with a stack
  ThreadValues values_;
};

}  // namespace tacho::report
