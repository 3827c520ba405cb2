#include "report/views/check/measured_capture.h"

#include <algorithm>
#include <utility>

#include "format/records/perf_abi.h"
#include "report/query/field_choice.h"
#include "report/query/gather.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

std::vector<EventBlock> blocks_of_all(Session& session) {
  std::vector<EventBlock> blocks;
  for (std::uint32_t event = 0; event < session.events().size(); ++event) blocks.push_back({event, 1});
  return blocks;
}

bool is_time_sampled(const format::EventAttr& attr) {
  return (attr.type == abi::kSoftware && (attr.config == abi::kCpuClock || attr.config == abi::kTaskClock)) ||
         (attr.type == abi::kHardware && attr.config == 0);  // cycles
}

}  // namespace

MeasuredCapture::MeasuredCapture(Session& session)
    : session_(session),
      schemas_(session.events(), session.features()),
      periods_(schemas_),
      weights_({}, session.events().size(), schemas_),
      profile_(blocks_of_all(session), ProfileShape{.by_comm = false, .facts = {}}),
      functions_(session),
      fields_(session, schemas_, "tacho check") {}

std::vector<FieldName> MeasuredCapture::value_fields() {
  std::vector<FieldName> fields;
  for (std::size_t event = 0; event < session_.events().size(); ++event) {
    const PayloadSchema* const schema = schemas_.schema_of(event);
    const bool is_payload = session_.events()[event].attr.is_bpf_output();
    const PayloadField* const field = schema == nullptr || !is_payload ? nullptr : value_field(*schema);
    if (field != nullptr && !is_counted_by_value(*field))
      fields.push_back({session_.events()[event].name, field->name});
  }
  return fields;
}

Sink::MergeBy MeasuredCapture::merge_by() const {
  return has_sums() ? MergeBy::FrameFunction : MergeBy::Address;
}

SumView* MeasuredCapture::sum_view() { return has_sums() ? this : nullptr; }

SumShape MeasuredCapture::shape() const { return {.by_comm = false, .merge_by = merge_by()}; }

RowId MeasuredCapture::row_of(const SumGroup& group) {
  return profile_.row_for({.event = group.event,
                           .location = group.location,
                           .thread = group.thread,
                           .comm = group.comm,
                           .stack = group.stack});
}

void MeasuredCapture::count(RowId row, std::size_t event, std::uint64_t period, std::uint64_t samples) {
  profile_.count(row, event, {.period = weights_.of_sum(event, period, samples), .samples = samples});
}

Sink::Flow MeasuredCapture::on_sample(const ResolvedSample& sample) {
  ++samples_;
  profile_.add_sample(sample, weights_.of(sample).value_or(0));
  periods_.see(sample);
  fields_.see(sample);
  return Flow::Continue;
}

void MeasuredCapture::finish() {
  lost_ = all_lost_samples(session_);
  for (std::size_t event = 0; event < profile_.blocks().size(); ++event) {
    describe_event(event);
    for (const RowId id : profile_.rows_of(id_of<BlockId>(event)))
      name_row(profile_.rows()[id], profile_.stack_of(id));
  }
}

void MeasuredCapture::describe_event(std::size_t event) {
  const format::Event& described = session_.events()[event];
  MeasuredEvent& made = events_.emplace_back();
  made.name = described.name;
  made.unit = weight_unit({}, described, schemas_.schema_of(event), periods_.field_of(event));
  made.is_clock = is_time_sampled(described.attr);
  rows_.emplace_back();
}

void MeasuredCapture::name_row(const ProfileRow& row, const Stack* stack) {
  MeasuredEvent& event = events_[index_of(row.block)];
  const std::uint64_t samples = row.only.samples;
  Row made{.begin = chains_.size(), .end = 0, .weight = row.only};
  event.weight += row.only;
  const bool has_stack = stack != nullptr && !stack->frames.empty();
  if (has_stack) {
    event.has_stacks = true;
    for (const LocationId frame : stack->frames)
      std::ranges::copy(functions_.of_frame(frame), std::back_inserter(chains_));
  } else {
    chains_.push_back(functions_.of_location(row.location));
  }
  made.end = chains_.size();
  for (std::size_t i = made.begin; i < made.end; ++i)
    if (functions_[chains_[i]].has_symbol()) named_frames_ += samples;
  frames_ += samples * (made.end - made.begin);
  if (has_stack) {
    stacks_ += samples;
    if (!functions_[chains_[made.end - 1]].has_symbol()) truncated_ += samples;
  }
  rows_[index_of(row.block)].push_back(made);
}

void MeasuredCapture::each_stack(std::size_t event,
                                 const std::function<void(FunctionStack, const Weight&)>& take) const {
  for (const Row& row : rows_[event])
    take(FunctionStack(chains_).subspan(row.begin, row.end - row.begin), row.weight);
}

double MeasuredCapture::lost() const { return percent_of(lost_, samples_ + lost_); }

}  // namespace tacho::report
