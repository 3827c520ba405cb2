// Ring buffers of BPF objects: converts their events to sample records like those of perf event arrays.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bpf/loaded_object.h"
#include "bpf/rings/map_reader.h"
#include "format/base/cursor.h"
#include "format/base/result.h"
#include "record/kernel/kernel_events.h"
#include "record/objects/ring_event.h"
#include "record/objects/ring_layout.h"
#include "record/opened_recording.h"

namespace tacho::record {

// --sample-rate and --max-rate for events of BPF programs that do not apply them in the kernel
// (tacho/emit.h).
class RateLimit {
 public:
  explicit RateLimit(const bpf::EventRate& rate) : rate_(rate) {}

  // Whether to record one more event of that time (ns). Times need not ascend: events of several CPUs mix.
  bool passes(std::uint64_t time);
  // The number of events above EventRate::most_a_second.
  std::uint64_t over() const { return over_; }

 private:
  bpf::EventRate rate_;
  std::uint64_t seen_ = 0, second_ = 0, in_second_ = 0, over_ = 0;
};

class ChannelRings {
 public:
  // Opens the ring buffers of the loaded objects. The arguments must outlive the result.
  static Result<ChannelRings> open(const OpenedRecording& recording, const KernelEvents& events,
                                   const bpf::EventRate& rate);

  bool empty() const { return rings_.empty(); }
  std::vector<int> fds() const;
  // Appends new events. False: an allocation failed, and an event is lost.
  bool take_samples(std::vector<std::byte>& to);
  // Events for which there was no room in their ring or in memory. Any thread may call it.
  std::vector<Losses> losses() const;
  std::uint64_t dropped() const { return dropped_; }  // of threads that are not followed; from any thread
  // Events of plain rings above --max-rate.
  std::uint64_t over_rate() const;

 private:
  struct Source {
    std::size_t object = 0, event = 0;
    std::string map;
    bpf::ChannelKind kind;
    bpf::Ring ring;
    RingLayout layout;
    OwnNumbers own;
    std::map<int, std::uint64_t> ids;  // by CPU
    // Events lost in this process. Atomic: the writing thread calls losses() during take_samples().
    std::unique_ptr<std::atomic<std::uint64_t>> lost = std::make_unique<std::atomic<std::uint64_t>>(0);
    RateLimit limit{bpf::EventRate{}};
  };
  ChannelRings(const OpenedRecording& recording, const KernelEvents& events)
      : recording_(&recording), events_(&events) {}
  std::vector<Losses> attributed_losses(const Source& source, std::uint64_t& others) const;
  static void count_lost(Source& source) { source.lost->fetch_add(1, std::memory_order_relaxed); }
  void add_sample(Source& source, format::Bytes bytes, std::vector<std::byte>& to);

  const OpenedRecording* recording_;
  const KernelEvents* events_;
  std::vector<Source> rings_;
  std::uint64_t dropped_ = 0;
};

}  // namespace tacho::record
