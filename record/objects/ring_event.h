// One event of a BPF ring buffer: its header, and the sample record that is made of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "bpf/attach/pid_numbers.h"
#include "format/base/cursor.h"
#include "format/extensions/payload_schema.h"
#include "format/records/event_attr.h"
#include "record/objects/ring_layout.h"

namespace tacho::record {

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

}  // namespace tacho::record
