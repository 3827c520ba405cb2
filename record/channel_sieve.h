// BPF programs run for whoever runs. Those that do not ask whom a recording follows (tacho/emit.h) write
// samples of other threads, too, which are taken out here and counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "bpf/follower.h"
#include "format/result.h"
#include "record/event_rate.h"
#include "record/events/target.h"

namespace tacho::record {

// A table of the threads of `target`: those of `tasks` and what came meanwhile, or `command` from its exec
// on.
Result<bpf::Follower> follow_target(const Target& target, const TargetTasks& tasks,
                                    std::optional<int> command);

class ChannelSieve {
 public:
  // Of the kernel's events `ids` are everybody's; `is_followed` says whose are wanted.
  ChannelSieve(std::vector<std::uint64_t> ids, std::function<bool(int thread)> is_followed);
  // Of these events, samples that are wanted otherwise go through the limit.
  void limit(std::vector<std::uint64_t> ids, const bpf::EventRate& rate);

  // Takes them out of the whole records that begin at `begin`; what is no record is left to others.
  void sift(std::vector<std::byte>& records, std::size_t begin);
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

}  // namespace tacho::record
