// BPF programs run for whoever runs. Those that do not ask whom a recording follows (tacho/emit.h) write
// samples of other threads, too, which are taken out here and counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "bpf/attach/follower.h"
#include "bpf/user_object.h"
#include "format/result.h"
#include "record/events/target.h"
#include "record/kernel/kernel_events.h"
#include "record/messages.h"
#include "record/objects/channel_rings.h"
#include "record/objects/summaries.h"
#include "record/opened_recording.h"

namespace tacho::record {

// A table of the threads of `target`: those of `tasks` and what came meanwhile, or `command` from its exec
// on.
Result<bpf::Follower> follow_target(const Target& target, const TargetTasks& tasks,
                                    std::optional<int> command);

class TargetFilter {
 public:
  // Of the kernel's events `ids` are everybody's; `is_followed` says whose are wanted.
  TargetFilter(std::vector<std::uint64_t> ids, std::function<bool(int thread)> is_followed);
  // Of these events, samples that are wanted otherwise go through the limit.
  void limit(std::vector<std::uint64_t> ids, const bpf::EventRate& rate);

  // Takes them out of the whole records that begin at `begin`; what is no record is left to others.
  void remove_unwanted(std::vector<std::byte>& records, std::size_t begin);
  std::uint64_t dropped() const { return dropped_; }
  // What was above the limit's ceiling.
  std::uint64_t over_rate() const { return limit_.over(); }

 private:
  bool keeps(const std::byte* record, std::size_t size);

  std::vector<std::uint64_t> ids_, limited_;  // ascending
  RateLimit limit_{bpf::EventRate{}};
  std::function<bool(int)> is_followed_;
  std::uint64_t dropped_ = 0;
};

// The channels of BPF objects while a recording runs: their ring buffers are read, and what nobody wants is
// left out.

// Tells the objects, which are not loaded yet, what is wanted: whose events, and how many of them. Those that
// do not ask are noted in `prepared`. A use error when there is none for the rate.
Result<> configure_objects(OpenedRecording& recording, const bpf::EventRate& rate, const Messages& messages);

class Channels {
 public:
  // Of the loaded objects. What is passed must outlive it; `prepared` is told how to ask for losses.
  static Result<Channels> open(OpenedRecording& recording, const KernelEvents& events,
                               const bpf::EventRate& rate, const SummaryReading& reading);

  // For the pump; null when there is nothing to do.
  ChannelRings* rings() { return rings_->empty() ? nullptr : rings_.get(); }
  Summaries* summaries() { return summaries_->empty() ? nullptr : summaries_.get(); }
  TargetFilter* target_filter() { return filter_ ? &*filter_ : nullptr; }

  struct LeftOut {
    std::uint64_t of_others = 0;  // of threads whom nobody follows, by programs that do not ask
    std::uint64_t over_rate = 0;  // above --max-rate, here and in the programs
  };
  LeftOut left_out() const;

 private:
  explicit Channels(const OpenedRecording& recording) : recording_(&recording) {}
  const OpenedRecording* recording_;
  std::shared_ptr<ChannelRings> rings_;   // also asked for losses at the end
  std::shared_ptr<Summaries> summaries_;  // the same
  std::optional<TargetFilter> filter_;
};

void report_left_out(const Channels::LeftOut& left_out, const bpf::EventRate& rate, const Messages& messages);

}  // namespace tacho::record
