// What rules can ask of one capture, read once: functions in stacks with their weights, values of fields,
// lost samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/decode/payload.h"
#include "report/profile/function.h"
#include "report/profile/function_table.h"
#include "report/profile/profile.h"
#include "report/profile/weight.h"
#include "report/profile/weight_unit.h"
#include "report/query/field_values.h"
#include "report/samples/session.h"
#include "report/samples/sum_view.h"

namespace tacho::report {

// An event with samples.
struct MeasuredEvent {
  std::string name, unit;  // unit: of its weights
  Weight weight;           // of all samples; `period`: in that unit
  bool has_stacks = false;
  bool is_clock = false;  // it samples time, so it is the default of rules about functions
};

// Functions of a stack, the innermost first: with inlined calls, and without call chains one.
using FunctionStack = std::span<const FunctionId>;

class MeasuredCapture : public Sink, private SumView {
 public:
  // The session's head was read, and it must outlive this.
  explicit MeasuredCapture(Session& session);

  // See FieldValues::add_field().
  Result<std::size_t> add_field(const FieldName& name) { return fields_.add_field(name); }
  // The fields that hold what an event's samples are about (query/field_choice.h), with their events.
  std::vector<FieldName> value_fields();
  // After the samples were read.
  void finish();

  const std::vector<MeasuredEvent>& events() const { return events_; }
  // Calls `take` for each distinct stack of an event.
  void each_stack(std::size_t event, const std::function<void(FunctionStack, const Weight&)>& take) const;
  const Function& function(FunctionId id) const { return functions_[id]; }
  const FunctionTable& functions() const { return functions_; }
  // `field`: from add_field().
  const Summary& values(std::size_t field) const { return fields_.values(field); }
  std::string_view unit(std::size_t field) const { return fields_.unit(field); }

  std::uint64_t samples() const { return samples_; }
  // Percent.
  double lost() const;
  double truncated() const { return percent_of(truncated_, stacks_); }
  double symbolized() const { return frames_ == 0 ? 100 : percent_of(named_frames_, frames_); }

  // Sink:
  bool takes_non_samples() const override { return false; }
  MergeBy merge_by() const override;
  SumView* sum_view() override;
  Flow on_sample(const ResolvedSample& sample) override;

 private:
  // Functions of the rows, one after another.
  struct Row {
    std::size_t begin = 0, end = 0;  // in chains_
    Weight weight;
  };

  bool has_sums() const { return fields_.is_empty() && weights_.is_of_sums(); }
  SumShape shape() const override;
  RowId row_of(const SumGroup& group) override;
  void count(RowId row, std::size_t event, std::uint64_t period, std::uint64_t samples) override;
  void end(const SumTotals& totals) override { samples_ = totals.samples; }
  void name_row(const ProfileRow& row, const Stack* stack);
  void describe_event(std::size_t event);
  static double percent_of(std::uint64_t part, std::uint64_t all) {
    return all == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(all);
  }

  Session& session_;
  EventSchemas schemas_;
  PeriodFields periods_;
  WeightChoice weights_;
  Profile profile_;
  FunctionTable functions_;
  FieldValues fields_;
  std::vector<MeasuredEvent> events_;
  std::vector<std::vector<Row>> rows_;  // by event
  std::vector<FunctionId> chains_;
  std::uint64_t samples_ = 0, lost_ = 0;
  std::uint64_t stacks_ = 0, truncated_ = 0, frames_ = 0, named_frames_ = 0;  // of all samples
};

}  // namespace tacho::report
