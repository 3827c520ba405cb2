// SampleLane: the per-thread parser and unwinder, which reads the fields and call chains of a batch's
// samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "format/base/diagnostics.h"
#include "format/container/capture_reader.h"
#include "format/records/sample.h"
#include "report/samples/batches.h"
#include "report/samples/chain_sources.h"
#include "report/samples/counter_values.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"
#include "report/samples/hook_functions.h"
#include "report/samples/lane_filter.h"
#include "report/samples/location_table.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/sink.h"
#include "report/samples/stack_table.h"
#include "symbolize/unwind/unwind.h"

namespace tacho::report {

// Whether the first frame of a call chain is the sample's own address, as in most samples: it is resolved
// only once.
bool begins_with_ip(const format::U64Array& chain, std::uint64_t ip, std::uint8_t cpumode);

class SampleLane {
 public:
  // All but `symbols` must outlive it.
  SampleLane(const format::CaptureReader& capture, const symbolize::SymbolOptions& symbols,
             const symbolize::JitCode& jit, const CgroupNames& cgroups, format::Diagnostics& diagnostics);
  // Starts a run. All must outlive it.
  void begin(const SampleOptions& options, const HookFunctions& hooks, LaneFilter& filter);

  // Null: the record is shorter than its fields require. Valid until the next call.
  const format::Sample* parse_sample(const BatchRecord& item);
  // The sample without its location and call chain. All must outlive the result.
  ResolvedSample fields_of(const BatchRecord& item, const format::Sample& sample,
                           const format::RecordView& view) const;
  LaneFilter& filter() { return *filter_; }
  // Whether filters look at more than event, thread, time and CPU.
  bool tests_samples() const { return filter_->has_condition() || filter_->looks_at_names(); }
  // Whether --where accepts the sample; and the filters by name, after chain_of().
  bool accepts_values(const BatchRecord& item, const format::Sample& sample);
  bool accepts_name(const BatchRecord& item, const format::Sample& sample, const std::optional<Chain>& chain);
  // Without the frames of the hook that took the sample. Returns nullopt if it has no call chain. Valid until
  // the next call.
  std::optional<Chain> chain_of(const BatchRecord& item, const format::Sample& sample);
  // Whether the last chain came from the payload.
  bool is_payload_chain() const { return is_payload_chain_; }
  // Whether the sample's location is the first frame of the last chain (also of every payload chain).
  bool location_is_first_frame() const { return location_is_first_frame_; }

  std::endian order() const { return order_; }
  const format::CaptureReader& capture() const { return *capture_; }
  const symbolize::Unwinder& unwinder() const { return unwinder_; }
  format::Diagnostics& diagnostics() { return *diagnostics_; }

 private:
  std::optional<Chain> whole_chain_of(const BatchRecord& item, const format::Sample& sample);

  const format::CaptureReader* capture_;
  format::Diagnostics* diagnostics_;
  const SampleOptions* options_ = nullptr;
  const HookFunctions* hooks_ = nullptr;
  LaneFilter* filter_ = nullptr;
  const CgroupNames* cgroups_;
  std::endian order_;
  format::SampleParser parser_;
  symbolize::Unwinder unwinder_;
  PayloadStacks payload_stacks_;
  std::vector<std::uint64_t> words_;       // scratch: a chain that is not the recorded one
  std::vector<std::uint64_t> after_hook_;  // scratch: a chain without its hook
  bool is_payload_chain_ = false, location_is_first_frame_ = false;
};

// For serial views: gives samples and records to a sink one by one, on the caller's thread. Locations and
// stacks are interned in the session's tables.
class SerialLane : public LocationFinder {
 public:
  using Flow = Sink::Flow;
  // All must outlive it.
  SerialLane(SampleLane& lane, LocationTable& location_table, StackTable& stacks)
      : lane_(&lane), location_table_(&location_table), stacks_(&stacks) {}
  void begin(const SampleOptions& options, Sink& sink, const FunctionMerging& merging);

  // `again`: the sink already got this sample, and stopped the run there (after a pipe's header).
  Flow give(const BatchRecord& item, bool again = false);

  const Location& find_in(const ResolvedSample& sample, std::uint64_t address, std::uint8_t cpumode) override;

 private:
  Flow give_sample(const BatchRecord& item, bool again);
  Flow give_other(const BatchRecord& item);
  LocationId location_of(const BatchRecord& item, const format::Sample& sample, std::uint8_t cpumode);
  void resolve(const BatchRecord& item, const std::optional<Chain>& chain, ResolvedSample& sample);
  void update_counters(const format::Sample& sample, const format::EventAttr& attr);
  bool accepts_values(const ResolvedSample& sample, bool has_values);
  const format::EventSet& events() const { return lane_->capture().events(); }

  SampleLane* lane_;
  LocationTable* location_table_;
  StackTable* stacks_;
  const SampleOptions* options_ = nullptr;
  Sink* sink_ = nullptr;
  Sink::MergeBy merge_by_ = Sink::MergeBy::Address;
  EventFilter taken_events_;  // Filter::events, for counter values, each of which has an event of its own
  CounterDeltas counters_;
  std::vector<CounterDeltas::Delta> deltas_;        // scratch: of the current sample
  const symbolize::SpaceVersion* space_ = nullptr;  // of the current sample
};

}  // namespace tacho::report
