// Call chains that are made of more than the words the kernel recorded as one: of a payload, of LBR entries,
// or with the caller of a leaf function.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "format/container/features.h"
#include "format/records/event_attr.h"
#include "format/records/event_set.h"
#include "format/records/sample.h"
#include "symbolize/unwind/unwind.h"

namespace tacho::report {

// Call chains that a BPF program put into its payload, in fields tagged ROLE("stack")
// (bpf/include/tacho/event.h).

// Whether the fields of a payload's schema make a call chain.
bool has_payload_stack(const format::PayloadSchema& schema);

// Whether any event of the capture has call chains: those that the kernel recorded, or such in its payload.
bool has_stacks(const format::EventSet& events, const format::Features& features);

class PayloadStacks {
 public:
  // `features` must outlive this.
  explicit PayloadStacks(const format::Features& features) : features_(&features) {}

  // The chain in the sample's payload in the kernel's form, leaf first: PERF_CONTEXT_KERNEL stands before
  // kernel addresses, PERF_CONTEXT_USER before those of the process. Fields come in the order of the struct,
  // and each ends at its first 0. Nothing: the payload has no such field. Valid until the next call.
  std::optional<format::U64Array> chain_of(const format::Event& event, std::size_t event_index,
                                           const format::Sample& sample, std::endian order);

 private:
  // A field of the payload.
  struct Field {
    std::uint64_t offset = 0;  // bytes
    std::uint64_t count = 0;   // addresses of 8 bytes; 0: to the payload's end
    enum class Space : std::uint8_t { ByAddress, Kernel, Process } space = Space::ByAddress;
  };
  const std::vector<Field>& fields_of(const format::Event& event, std::size_t event_index);
  void append(const Field& field, format::Bytes payload, std::endian order);

  const format::Features* features_;
  std::vector<std::optional<std::vector<Field>>> known_;  // by event
  std::vector<std::uint64_t> chain_;
};

// Call chains of --call-graph lbr: the CPU recorded the calls that have not returned.
class LbrStack {
 public:
  // The sample's chain as perf makes it: the recorded kernel part up to PERF_CONTEXT_USER; then, instead of
  // the user part, the target of the newest call and the source of each call. Sources are not return
  // addresses, so each has a mark of its own. Nothing: the event has no LBR call stack, or no such mark is in
  // the first `max_words` words, when perf takes the recorded chain. Valid until the next call.
  std::optional<format::U64Array> chain_of(const format::Sample& sample, const format::EventAttr& attr,
                                           std::size_t max_words);

 private:
  std::vector<std::uint64_t> words_;
};

// Call chains of arm64 by frame pointers: a leaf function has no frame, so the kernel's walk misses its
// caller. perf records the link register too, which has the caller's address.
class LeafCaller {
 public:
  // The sample's chain with that caller, as perf makes it. Nothing: the chain has it, or the event did not
  // record the link register alone. Valid until the next call.
  std::optional<format::U64Array> chain_of(const format::Sample& sample, const format::EventAttr& attr,
                                           symbolize::Unwinder& unwinder,
                                           const symbolize::SpaceVersion& space, std::endian order);

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace tacho::report
