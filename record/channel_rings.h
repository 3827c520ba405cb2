// What BPF objects put into ring buffers, as samples: the records that the kernel writes for perf event
// arrays.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bpf/ring.h"
#include "format/cursor.h"
#include "format/event_attr.h"
#include "format/result.h"
#include "record/event_rate.h"
#include "record/kernel/kernel_events.h"
#include "record/output/ring_layout.h"
#include "record/prepared.h"

namespace tacho::record {

// One event of a ring buffer. Of a plain ring time is that of reading, the others are not known.
struct RingEvent {
  std::uint64_t time = 0;  // CLOCK_MONOTONIC, ns
  std::optional<std::uint32_t> cpu;
  std::uint32_t process = ~0U, thread = ~0U;
  format::Bytes payload;
};
// The head that RING_CHANNEL() of tacho/emit.h puts in front. Nothing when there is no sound one.
std::optional<RingEvent> parse_ring_event(format::Bytes bytes);
// Appends the SAMPLE record of an event with the kernel's number `id`. False when it would be larger than a
// record can be.
bool append_sample(std::vector<std::byte>& to, const RingEvent& event, std::uint64_t id,
                   const format::EventAttr& attr, const RingLayout& layout = {});

// The same of what is known already: `event.payload` is written as it is.
struct SampleParts {
  std::vector<std::uint64_t> chain;  // written where the event's samples have one
  std::uint64_t period = 1;
};
bool append_sample(std::vector<std::byte>& to, const RingEvent& event, std::uint64_t id,
                   const format::EventAttr& attr, const SampleParts& parts);

// Nanoseconds of CLOCK_MONOTONIC.
std::uint64_t monotonic_now();

class ChannelRings {
 public:
  // Those of the prepared objects, which are loaded. What is passed must outlive it.
  static Result<ChannelRings> open(const Prepared& prepared, const KernelEvents& events,
                                   const bpf::EventRate& rate);

  bool empty() const { return rings_.empty(); }
  std::vector<int> fds() const;
  // Appends what came since the last call. False when memory was refused: an event of it is lost.
  bool take(std::vector<std::byte>& to);
  // Events that found no room in their ring or in memory, so far: any thread may ask; and of threads whom
  // nobody follows.
  std::vector<Losses> losses() const;
  std::uint64_t dropped() const { return dropped_; }
  // Of plain rings, what was above the ceiling of a second.
  std::uint64_t over_rate() const;

 private:
  struct Source {
    std::size_t object = 0, event = 0;
    std::string map;
    bpf::ChannelKind kind;
    bpf::Ring ring;
    RingLayout layout;
    std::map<int, std::uint64_t> ids;  // by CPU
    // Here. A thread that writes the capture asks losses() while take() goes on.
    std::unique_ptr<std::atomic<std::uint64_t>> lost = std::make_unique<std::atomic<std::uint64_t>>(0);
    RateLimit limit{bpf::EventRate{}};
  };
  ChannelRings(const Prepared& prepared, const KernelEvents& events)
      : prepared_(&prepared), events_(&events) {}
  std::vector<Losses> told_losses(const Source& source, std::uint64_t& others) const;
  static void count_lost(Source& source) { source.lost->fetch_add(1, std::memory_order_relaxed); }
  void add(Source& source, format::Bytes bytes, std::vector<std::byte>& to);

  const Prepared* prepared_;
  const KernelEvents* events_;
  std::vector<Source> rings_;
  std::uint64_t dropped_ = 0;
};

}  // namespace tacho::record
