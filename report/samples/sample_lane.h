// SampleLane: a worker's parser and unwinder. Parses the samples of a batch and makes their call chains.
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
#include "report/samples/counter_values.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"
#include "report/samples/lbr_stack.h"
#include "report/samples/leaf_caller.h"
#include "report/samples/payload_stack.h"
#include "report/samples/place_table.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/sink.h"
#include "report/samples/stack_table.h"
#include "symbolize/unwind/unwind.h"

namespace tacho::report {

class SampleLane {
 public:
  // `capture` and `diagnostics` must outlive it.
  SampleLane(const format::CaptureReader& capture, const symbolize::SymbolOptions& symbols,
             format::Diagnostics& diagnostics);
  // Of a run; `options` must live as long as samples are read.
  void begin(const SampleOptions& options);

  // Null when the record is shorter than its fields say. Valid until the next call.
  const format::Sample* sample_of(const BatchItem& item);
  // Nothing: it has none. Valid until the next call.
  std::optional<Chain> chain_of(const BatchItem& item, const format::Sample& sample);
  // Of the chain that chain_of() gave last.
  bool is_payload_chain() const { return is_payload_chain_; }
  // Likewise: whether its first frame is the sample's own place, unless it is corrupt and has no frames.
  bool begins_with_ip() const { return begins_with_ip_; }

  std::endian order() const { return order_; }
  const format::CaptureReader& capture() const { return *capture_; }
  const symbolize::Unwinder& unwinder() const { return unwinder_; }
  format::Diagnostics& diagnostics() { return *diagnostics_; }

 private:
  const format::CaptureReader* capture_;
  format::Diagnostics* diagnostics_;
  const SampleOptions* options_ = nullptr;
  std::endian order_;
  format::SampleParser parser_;
  symbolize::Unwinder unwinder_;
  PayloadStacks payload_stacks_;
  LbrStack lbr_stack_;
  LeafCaller leaf_caller_;
  bool is_payload_chain_ = false, begins_with_ip_ = false;
};

// Gives the samples and records of batches to a sink one by one, on the caller's thread, for serial views.
// Places and stacks are interned in the session's tables.
class SerialLane : public PlaceFinder {
 public:
  using Flow = Sink::Flow;
  // All must outlive it.
  SerialLane(SampleLane& lane, PlaceTable& places, StackTable& stacks, const CgroupNames& cgroups)
      : lane_(&lane), places_(&places), stacks_(&stacks), cgroups_(&cgroups) {}
  void begin(const SampleOptions& options, Sink& sink, const NamesOf& names_of);

  // Looks up places and stacks of the batch's samples. May run on another thread than give() for the previous
  // batch, if the sink looks up no other places (Sink::looks_up()).
  void find_places(Batch& batch);
  // `again`: the sample at which reading a pipe's header stopped.
  Flow give(const Batch& batch, std::size_t item, bool again = false);

  const Location& find(const ResolvedSample& sample, std::uint64_t address) override;
  const Location& find_in(const ResolvedSample& sample, std::uint64_t address, std::uint8_t cpumode) override;

 private:
  Flow give_sample(const BatchItem& item, const ItemPlaces* places, bool again);
  Flow give_other(const BatchItem& item);
  const Location& locate(std::uint64_t ip, std::uint8_t cpumode);
  std::uint32_t place_of(const BatchItem& item, const format::Sample& sample, std::uint8_t cpumode);
  ItemPlaces places_of(const BatchItem& item, const format::Sample& sample);
  void take_values(const format::Sample& sample, const format::EventAttr& attr);
  bool condition_holds(const ResolvedSample& sample, bool has_values);
  const format::EventSet& events() const { return lane_->capture().events(); }

  SampleLane* lane_;
  PlaceTable* places_;
  StackTable* stacks_;
  const CgroupNames* cgroups_;
  const SampleOptions* options_ = nullptr;
  Sink* sink_ = nullptr;
  bool names_functions_ = false;  // of samples' own places
  EventFilter taken_events_;      // of the filter: values of groups
  CounterValues counters_;
  format::SampleParser shown_;                      // of samples whose places are known
  std::vector<CounterValues::Moved> moved_;         // scratch: of the sample at hand
  const symbolize::SpaceVersion* space_ = nullptr;  // of the sample at hand
};

}  // namespace tacho::report
