// Ring buffers of BPF objects: their events become sample records, as the kernel writes them for perf event
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
#include <utility>
#include <vector>

#include "bpf/rings/map_reader.h"
#include "bpf/user_object.h"
#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/extensions/payload_schema.h"
#include "format/records/event_attr.h"
#include "record/kernel/kernel_events.h"
#include "record/opened_recording.h"

namespace tacho::record {

// Special fields in the payload of a ring buffer's event: its stack, from fields of ROLE("stack"), and its
// weight (bpf/include/tacho/event.h). For perf event arrays the kernel walks the stack.

// Addresses as the kernel writes call chains: PERF_CONTEXT_KERNEL before its own, PERF_CONTEXT_USER before
// the process's.
class ChainBuilder {
 public:
  // False at the 0 that ends a stack.
  bool add(std::uint64_t address);
  std::vector<std::uint64_t> take() && { return std::move(chain_); }

 private:
  std::vector<std::uint64_t> chain_;
  std::uint64_t mark_ = 0;  // none yet
};

class RingLayout {
 public:
  RingLayout() = default;  // of payloads without a schema
  explicit RingLayout(const format::PayloadSchema& schema);

  bool has_stack() const { return !stacks_.empty(); }
  // The call chain as the kernel writes it: with PERF_CONTEXT_KERNEL before its own addresses, and
  // PERF_CONTEXT_USER before the process's.
  std::vector<std::uint64_t> chain_of(format::Bytes payload) const;
  // The weight, or the value where no field is one; 1 where there is no stack to be weighed.
  std::uint64_t period_of(format::Bytes payload) const;
  // The payload without fields that are in the chain, where those are the last ones.
  format::Bytes rest_of(format::Bytes payload) const;
  // The schema of what rest_of() leaves.
  static format::PayloadSchema schema_of_rest(format::PayloadSchema schema);

 private:
  struct Field {
    std::size_t offset = 0, count = 0;  // bytes; words of 8 bytes, 0: up to the payload's end
  };
  std::vector<Field> stacks_;
  std::optional<Field> weight_;  // count: its bytes
  std::optional<std::size_t> kept_;
};

// How many events of BPF objects are recorded: --sample-rate and --max-rate, for programs that do not apply
// them in the kernel (tacho/emit.h).

class RateLimit {
 public:
  explicit RateLimit(const bpf::EventRate& rate) : rate_(rate) {}

  // Whether one more event, of that time in ns, is recorded. Times need not ascend: events of other CPUs come
  // late.
  bool passes(std::uint64_t time);
  // Events above EventRate::most_a_second.
  std::uint64_t over() const { return over_; }

 private:
  bpf::EventRate rate_;
  std::uint64_t seen_ = 0, second_ = 0, in_second_ = 0, over_ = 0;
};

// Lost events as BPF programs counted them: by CPU and cgroup, with the time (tacho/emit.h).

struct AttributedLoss {
  int cpu = -1;
  std::uint64_t cgroup = 0;           // the kernel's number; 0: not known
  std::uint64_t lost = 0;             // events since the programs were loaded
  std::uint64_t first = 0, last = 0;  // CLOCK_MONOTONIC, ns
};

// Losses that the programs of `object` counted beside its map `map`; none where they were made with an
// older tacho/emit.h or do not use it.
void read_attributed_losses(const bpf::UserObject& object, const std::string& map,
                            const std::function<void(const AttributedLoss&)>& sink);

// The kernel's counts of its own rings, by event and CPU, attributed to cgroups as far as the programs that
// wrote into them know. The sum stays the kernel's.
std::vector<Losses> attributed_by_programs(const KernelEvents& events, const OpenedRecording& recording);

// For one event: `unnamed`, from the kernel, is reduced by the result.
std::vector<Losses> take_attributed(Losses& unnamed, const std::vector<AttributedLoss>& named);

// Events of BPF ring buffers as sample records, as the kernel writes them for perf event arrays.

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

// The same with known parts: `event.payload` is written as it is.
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
  // Ring buffers of the loaded objects. What is passed must outlive it.
  static Result<ChannelRings> open(const OpenedRecording& recording, const KernelEvents& events,
                                   const bpf::EventRate& rate);

  bool empty() const { return rings_.empty(); }
  std::vector<int> fds() const;
  // Appends new events. False when memory was refused: an event is lost.
  bool take(std::vector<std::byte>& to);
  // Events that found no space in their ring or in memory; and events of threads that are not followed. Any
  // thread may call both.
  std::vector<Losses> losses() const;
  std::uint64_t dropped() const { return dropped_; }
  // Events of plain rings above the limit of a second.
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
  ChannelRings(const OpenedRecording& recording, const KernelEvents& events)
      : recording_(&recording), events_(&events) {}
  std::vector<Losses> attributed_losses(const Source& source, std::uint64_t& others) const;
  static void count_lost(Source& source) { source.lost->fetch_add(1, std::memory_order_relaxed); }
  void add(Source& source, format::Bytes bytes, std::vector<std::byte>& to);

  const OpenedRecording* recording_;
  const KernelEvents* events_;
  std::vector<Source> rings_;
  std::uint64_t dropped_ = 0;
};

}  // namespace tacho::record
