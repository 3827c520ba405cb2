// The channels of BPF objects while a recording runs: ring buffers, summaries, and the filter of unwanted
// samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bpf/attach/follower.h"
#include "bpf/attach/pid_numbers.h"
#include "bpf/user_object.h"
#include "format/base/result.h"
#include "record/events/target.h"
#include "record/kernel/kernel_events.h"
#include "record/messages.h"
#include "record/objects/channel_rings.h"
#include "record/objects/summaries.h"
#include "record/opened_recording.h"

namespace tacho::record {

// Makes the table of followed threads: those in `tasks` and the ones that they started meanwhile, or
// `command` from its exec on. It has the kernel's tids (`numbers`).
Result<bpf::Follower> follow_target(const Target& target, const TargetTasks& tasks,
                                    std::optional<int> command,
                                    const std::optional<bpf::PidNumbers>& numbers);

// Removes and counts samples of threads that the recording does not follow. BPF programs run in every thread,
// and programs without tacho_wants() (tacho/emit.h) write samples of all.
class TargetFilter {
 public:
  // `ids`: of the events that need filtering; `is_followed`: whether a thread is wanted.
  TargetFilter(std::vector<std::uint64_t> ids, std::function<bool(int thread)> is_followed);
  // Applies a rate limit to these events, after the filter.
  void limit(std::vector<std::uint64_t> ids, const bpf::EventRate& rate);

  // Removes unwanted samples from the records that start at `begin`; damaged bytes are kept.
  void remove_unwanted(std::vector<std::byte>& records, std::size_t begin);
  std::uint64_t dropped() const { return dropped_; }
  // Samples above the limit.
  std::uint64_t over_rate() const { return limit_.over(); }

 private:
  bool keeps(const std::byte* record, std::size_t size);

  std::vector<std::uint64_t> ids_, limited_;  // ascending
  RateLimit limit_{bpf::EventRate{}};
  std::function<bool(int)> is_followed_;
  std::uint64_t dropped_ = 0;
};

// Passes the target (`follower`; null: all threads) and the rate to the objects, before they are loaded.
// A use error: a rate without objects.
Result<FilteringOfObjects> configure_objects(std::span<bpf::UserObject> objects,
                                             const bpf::Follower* follower, const bpf::EventRate& rate,
                                             const Messages& messages);

class Channels {
 public:
  // Opens the channels of the loaded objects. The arguments must outlive the result.
  static Result<Channels> open(const OpenedRecording& recording, const KernelEvents& events,
                               const bpf::EventRate& rate, const SummaryReading& reading);

  // For the record loop; null: none.
  ChannelRings* rings() { return rings_->empty() ? nullptr : rings_.get(); }
  Summaries* summaries() { return summaries_->empty() ? nullptr : summaries_.get(); }
  TargetFilter* target_filter() { return filter_ ? &*filter_ : nullptr; }

  struct LeftOut {
    std::uint64_t of_others = 0;  // events of threads that are not followed
    std::uint64_t over_rate = 0;  // events above --max-rate, dropped here or by programs
  };
  LeftOut left_out() const;
  // Losses of ring buffers and summaries; any thread may call it.
  std::vector<Losses> losses() const;
  // Messages about what is missing in summaries.
  std::vector<std::string> troubles() const { return summaries_->troubles(); }

 private:
  explicit Channels(const OpenedRecording& recording) : recording_(&recording) {}
  const OpenedRecording* recording_;
  std::shared_ptr<ChannelRings> rings_;   // shared with the writing thread, for losses
  std::shared_ptr<Summaries> summaries_;  // likewise
  std::optional<TargetFilter> filter_;
};

void report_left_out(const Channels::LeftOut& left_out, const bpf::EventRate& rate, const Messages& messages);

}  // namespace tacho::record
