// Ring buffers of BPF objects: converts their events to sample records like those of perf event arrays.
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

#include "bpf/attach/pid_numbers.h"
#include "bpf/loaded_object.h"
#include "bpf/rings/map_reader.h"
#include "format/base/cursor.h"
#include "format/base/result.h"
#include "format/extensions/payload_schema.h"
#include "format/records/event_attr.h"
#include "record/kernel/kernel_events.h"
#include "record/opened_recording.h"

namespace tacho::record {

// Makes a call chain as the kernel writes it: PERF_CONTEXT_KERNEL before kernel addresses, PERF_CONTEXT_USER
// before user addresses.
class ChainBuilder {
 public:
  // False: the address is the 0 at the end of a stack.
  bool add_address(std::uint64_t address);
  std::vector<std::uint64_t> take_chain() && { return std::move(chain_); }

 private:
  std::vector<std::uint64_t> chain_;
  std::uint64_t mark_ = 0;  // the last context marker; 0: none
};

// The fields of a ring buffer's event that become parts of its sample (bpf/include/tacho/event.h): its stack,
// ROLE("stack"), and its weight. (For perf event arrays the kernel walks the stack.)
class RingLayout {
 public:
  RingLayout() = default;  // of payloads without a schema
  explicit RingLayout(const format::PayloadSchema& schema);

  bool has_stack() const { return !stacks_.empty(); }
  // The call chain, as by ChainBuilder.
  std::vector<std::uint64_t> chain_of(format::Bytes payload) const;
  // The weight, or the event's value if no field is the weight; 1 if there is no stack.
  std::uint64_t period_of(format::Bytes payload) const;
  // The payload without the fields of the chain, if these are the last ones.
  format::Bytes rest_of(format::Bytes payload) const;
  // The schema of rest_of().
  static format::PayloadSchema schema_of_rest(format::PayloadSchema schema);

 private:
  struct Field {
    std::size_t offset = 0, count = 0;  // bytes; words of 8 bytes, 0: up to the payload's end
  };
  std::vector<Field> stacks_;
  std::optional<Field> weight_;  // `count`: its size in bytes
  std::optional<std::size_t> kept_;
};

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

// Lost events as BPF programs counted them: by CPU and cgroup, with the time (tacho/emit.h).
struct AttributedLoss {
  int cpu = -1;
  std::uint64_t cgroup = 0;           // id; 0: unknown
  std::uint64_t lost = 0;             // events since the programs were loaded
  std::uint64_t first = 0, last = 0;  // CLOCK_MONOTONIC, ns
};

// Losses that the programs of `object` counted for its map `map`. None if they do not use tacho/emit.h, or an
// old one.
void read_attributed_losses(const bpf::LoadedObject& object, const std::string& map,
                            const std::function<void(const AttributedLoss&)>& sink);

// The kernel's loss counts by event and CPU, attributed to cgroups as far as programs counted them. The sums
// are the kernel's.
std::vector<Losses> attributed_by_programs(const KernelEvents& events, const OpenedRecording& recording);

// For one event: reduces the kernel's counts `unnamed` by the result.
std::vector<Losses> take_attributed(Losses& unnamed, const std::vector<AttributedLoss>& named);

// One event of a ring buffer. For a plain ring `time` is the time of reading; the other fields are unknown.
struct RingEvent {
  std::uint64_t time = 0;  // CLOCK_MONOTONIC, ns
  std::optional<std::uint32_t> cpu;
  std::uint32_t process = ~0U, thread = ~0U;
  std::uint64_t cgroup = 0;  // id; 0: unknown
  format::Bytes payload;
};
// In a pid namespace (`numbers`): replaces the kernel's pids and tids in an event by those of the namespace.
// Zeros: a thread outside.
class OwnNumbers {
 public:
  OwnNumbers() = default;
  // `schema`: of an embedded recorder's payload, whose members pid, tid and NAME_pid, NAME_tid are such
  // numbers; null: of a payload of unknown contents. `numbers` must outlive this.
  OwnNumbers(const std::optional<bpf::PidNumbers>& numbers, const format::PayloadSchema* schema);
  // Its payload is valid until the next call.
  void translate(RingEvent& event);

 private:
  const bpf::PidNumbers* numbers_ = nullptr;
  std::vector<std::pair<std::size_t, std::size_t>> members_;  // offset, bytes
  std::vector<std::byte> payload_;                            // of the last event
};

// Parses the header that RING_CHANNEL() of tacho/emit.h writes. Nothing: there is no valid one.
std::optional<RingEvent> parse_ring_event(format::Bytes bytes);
// Appends the SAMPLE record of an event with the perf event's `id`. False: it would exceed the size of a
// record.
bool append_sample(std::vector<std::byte>& to, const RingEvent& event, std::uint64_t id,
                   const format::EventAttr& attr, const RingLayout& layout = {});

// The same with a given chain: `event.payload` is written unchanged.
struct SampleParts {
  std::vector<std::uint64_t> chain;  // written if the event's samples have a call chain
  std::uint64_t period = 1;
};
bool append_sample(std::vector<std::byte>& to, const RingEvent& event, std::uint64_t id,
                   const format::EventAttr& attr, const SampleParts& parts);

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
    // Events lost in this process. Atomic: the writing thread calls losses() during take().
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
