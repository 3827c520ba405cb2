#include "report/samples/sample_lane.h"

#include <span>
#include <utility>
#include <variant>

namespace tacho::report {
namespace {

namespace abi = format::abi;
using format::Damage;
using Flow = Sink::Flow;

std::uint8_t cpumode_of(const format::Sample& sample) {
  return static_cast<std::uint8_t>(sample.misc & abi::kCpumodeMask);
}

}  // namespace

bool begins_with_ip(const format::U64Array& chain, std::uint64_t ip, std::uint8_t cpumode) {
  if (chain.size() < 2) return false;
  const std::uint64_t mark = chain[0];
  const bool is_same_mode = (mark == abi::kContextKernel && cpumode == abi::kCpumodeKernel) ||
                            (mark == abi::kContextUser && cpumode == abi::kCpumodeUser);
  return is_same_mode && chain[1] == ip;
}

SampleLane::SampleLane(const format::CaptureReader& capture, const symbolize::SymbolOptions& symbols,
                       const symbolize::JitCode& jit, const CgroupNames& cgroups,
                       format::Diagnostics& diagnostics)
    : capture_(&capture),
      diagnostics_(&diagnostics),
      cgroups_(&cgroups),
      order_(capture.layout().order),
      unwinder_(symbols, capture.features(), &jit),
      payload_stacks_(capture.features()) {}

void SampleLane::begin(const SampleOptions& options, const HookFunctions& hooks, LaneFilter& filter) {
  options_ = &options;
  hooks_ = &hooks;
  filter_ = &filter;
}

ResolvedSample SampleLane::fields_of(const BatchRecord& item, const format::Sample& sample,
                                     const format::RecordView& view) const {
  ResolvedSample resolved;
  resolved.fields = &sample;
  resolved.record = &view;
  resolved.events = &capture_->events();
  resolved.event_index = resolved.record_event = item.event;
  resolved.period = sample.period;
  resolved.thread = item.thread;
  resolved.comm = item.comm();
  resolved.order = view.order;
  resolved.cgroups = cgroups_;
  return resolved;
}

bool SampleLane::accepts_values(const BatchRecord& item, const format::Sample& sample) {
  if (!filter_->has_condition()) return true;
  format::RecordView view = format::whole_record({item.record, item.size}, order_);
  view.offset = item.offset;
  return filter_->accepts_values(fields_of(item, sample, view), *item.space);
}

bool SampleLane::accepts_name(const BatchRecord& item, const format::Sample& sample,
                              const std::optional<Chain>& chain) {
  if (!filter_->looks_at_names()) return true;
  LocationTable::Address own{sample.ip, cpumode_of(sample)};
  if (chain && location_is_first_frame_) own = first_address(*chain).value_or(own);
  return filter_->accepts_name(*item.space, own, sample.ip);
}

const format::Sample* SampleLane::parse_sample(const BatchRecord& item) {
  const format::RecordView view = format::whole_record({item.record, item.size}, order_);
  const format::Sample* const sample = parser_.parse(view, capture_->events()[item.event].attr);
  if (sample == nullptr) {
    diagnostics_->add_finding(Damage::BadRecord, item.offset, "a sample that is shorter than its fields");
  } else if (sample->unread != 0) {
    diagnostics_->add_finding(Damage::BadRecord, item.offset, "a sample with bytes after its last field");
  }
  return sample;
}

std::optional<Chain> SampleLane::chain_of(const BatchRecord& item, const format::Sample& sample) {
  auto chain = whole_chain_of(item, sample);
  if (!chain || options_->keeps_hooks || !is_taken_by_hook(capture_->events()[item.event].attr)) return chain;
  const std::size_t hooks = hooks_->count_at_leaf(chain->words, *item.space);
  if (hooks == 0) return chain;
  after_hook_.clear();
  after_hook_.push_back(chain->words[0]);
  for (std::size_t i = 1 + hooks; i < chain->words.size(); ++i) after_hook_.push_back(chain->words[i]);
  chain->words = format::U64Array(std::as_bytes(std::span(after_hook_)), std::endian::native);
  // The sample's own address is in the hook, too.
  location_is_first_frame_ = !options_->keeps_callers || after_hook_.size() <= options_->max_stack;
  return chain;
}

std::optional<Chain> SampleLane::whole_chain_of(const BatchRecord& item, const format::Sample& sample) {
  is_payload_chain_ = location_is_first_frame_ = false;
  if (!options_->wants_stacks) return std::nullopt;
  const format::Event& event = capture_->events()[item.event];
  if (options_->wants_payload_stacks && event.attr.is_bpf_output()) {
    if (const auto words = payload_stacks_.chain_of(event, item.event, sample, order_)) {
      is_payload_chain_ = true;
      location_is_first_frame_ = !words->empty();
      return Chain{*words, {}, options_->max_stack};
    }
  }
  if (!event.attr.samples(abi::kSampleCallchain)) return std::nullopt;
  if (const auto calls = lbr_chain(sample, event.attr, options_->max_stack, words_)) {
    location_is_first_frame_ = begins_with_ip(*calls, sample.ip, cpumode_of(sample));
    return Chain{*calls, {}, calls->size()};
  }
  const bool first_may_be_missing = options_->keeps_callers && sample.callchain.size() > options_->max_stack;
  location_is_first_frame_ =
      !first_may_be_missing && begins_with_ip(sample.callchain, sample.ip, cpumode_of(sample));
  if (symbolize::Unwinder::can_unwind(event.attr))
    return Chain{sample.callchain, unwinder_.unwind(sample, *item.space, options_->max_unwound(), order_),
                 options_->max_stack};
  if (const auto with_caller =
          chain_with_leaf_caller(sample, event.attr, unwinder_, *item.space, order_, words_))
    return Chain{*with_caller, {}, options_->max_stack + 1};  // as in perf, the added caller does not count
  return Chain{sample.callchain, {}, options_->max_stack};
}

void SerialLane::begin(const SampleOptions& options, Sink& sink, const FunctionMerging& merging) {
  options_ = &options;
  sink_ = &sink;
  merge_by_ = merging.merge_by;
  taken_events_ = EventFilter(options.filter.events);
}

// Of the sample's own ip.
LocationId SerialLane::location_of(const BatchRecord& item, const format::Sample& sample,
                                   std::uint8_t cpumode) {
  return merges_ips_by_function(merge_by_) ? location_table_->find_function(*item.space, sample.ip, cpumode)
                                           : location_table_->find_location(*item.space, sample.ip, cpumode);
}

const Location& SerialLane::find_in(const ResolvedSample&, std::uint64_t address, std::uint8_t cpumode) {
  return location_table_->locations()[location_table_->find_location(*space_, address, cpumode)];
}

Flow SerialLane::give(const BatchRecord& item, bool again) {
  return item.is_sample ? give_sample(item, again) : give_other(item);
}

Flow SerialLane::give_sample(const BatchRecord& item, bool again) {
  const format::EventAttr& attr = events()[item.event].attr;
  const format::Sample* const sample = lane_->parse_sample(item);
  if (sample == nullptr) return Flow::Continue;
  const bool has_values = attr.samples(abi::kSampleRead);
  if (has_values) {
    if (!again) update_counters(*sample, attr);
    const Filter& filter = options_->filter;
    if (options_->leaves_out_guests && is_guest(cpumode_of(*sample))) return Flow::Continue;
    if (deltas_.empty() || !filter.accepts_start(*sample) || !filter.accepts_comm(item.comm()))
      return Flow::Continue;
  }
  format::RecordView view = format::whole_record({item.record, item.size}, lane_->order());
  view.offset = item.offset;
  ResolvedSample resolved = lane_->fields_of(item, *sample, view);
  resolved.finder = this;
  space_ = item.space;
  if (!accepts_values(resolved, has_values)) return Flow::Continue;
  const std::optional<Chain> chain = lane_->chain_of(item, *sample);
  if (!lane_->accepts_name(item, *sample, chain)) return Flow::Continue;
  resolve(item, chain, resolved);
  if (!has_values) return sink_->on_sample(resolved);
  // A sample with counter values becomes one sample for each member of the group. The period of each is the
  // increase of its counter; members that did not increase are left out.
  for (const CounterDeltas::Delta& one : deltas_) {
    resolved.event_index = one.event;
    resolved.period = one.value;
    if (sink_->on_sample(resolved) == Flow::Stop) return Flow::Stop;
  }
  return Flow::Continue;
}

// Each value of a group is a sample with its own event and period: values that do not match are erased from
// deltas_.
bool SerialLane::accepts_values(const ResolvedSample& sample, bool has_values) {
  LaneFilter& filter = lane_->filter();
  if (!has_values) return filter.accepts_values(sample, *space_);
  ResolvedSample one_value = sample;
  std::erase_if(deltas_, [&](const CounterDeltas::Delta& one) {
    one_value.event_index = one.event;
    one_value.period = one.value;
    return !filter.accepts_values(one_value, *space_);
  });
  return !deltas_.empty();
}

void SerialLane::resolve(const BatchRecord& item, const std::optional<Chain>& chain, ResolvedSample& sample) {
  if (chain) {
    sample.stack = &stacks_->stack_of(*chain, *item.space);
    sample.has_payload_stack = lane_->is_payload_chain();
  }
  const bool is_first = shares_ips_with_frames(merge_by_) && sample.stack != nullptr &&
                        !sample.stack->frames.empty() && lane_->location_is_first_frame();
  sample.location_id =
      is_first ? sample.stack->frames[0] : location_of(item, *sample.fields, cpumode_of(*sample.fields));
  sample.location = &location_table_->locations()[sample.location_id];
}

// Sets `deltas_` to the differences of the sample's counter values, of the events that the filter takes.
void SerialLane::update_counters(const format::Sample& sample, const format::EventAttr& attr) {
  const std::size_t unknown = counters_.update(sample, attr, events(), deltas_);
  if (unknown > 0) {
    lane_->diagnostics().add_finding(Damage::UnknownEvent, format::Diagnostics::kNoOffset,
                                     "a value in a group's sample", unknown);
  }
  std::erase_if(
      deltas_, [this](const CounterDeltas::Delta& one) { return !taken_events_.takes(events(), one.event); });
}

Flow SerialLane::give_other(const BatchRecord& item) {
  const format::EventAttr& attr = events()[item.event].attr;
  format::RecordView view = format::whole_record({item.record, item.size}, lane_->order());
  view.offset = item.offset;
  const auto record = format::parse_record(view, attr);
  if (!record) return Flow::Continue;  // not reached: BatchReader parsed it
  NonSampleRecord other;
  other.view = &view;
  other.record = &*record;
  other.event_index = item.event;
  if (attr.has(abi::kSampleIdAll)) other.id = format::parse_sample_id(view, attr);
  other.thread = item.thread;
  other.comm = item.comm();
  return sink_->on_non_sample(other);
}

}  // namespace tacho::report
