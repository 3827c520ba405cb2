// Call chains other than the recorded PERF_SAMPLE_CALLCHAIN: from a BPF payload, from LBR call-stack entries,
// or with the link register's caller added.
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

// Whether the schema has a field that is a call chain.
bool has_payload_stack(const format::PayloadSchema& schema);

// Whether any event of the capture has call chains, recorded by the kernel or in its payload.
bool has_stacks(const format::EventSet& events, const format::Features& features);

class PayloadStacks {
 public:
  // `features` must outlive this.
  explicit PayloadStacks(const format::Features& features) : features_(&features) {}

  // The chain in the sample's payload in the kernel's form, leaf first: PERF_CONTEXT_KERNEL is before
  // kernel addresses, PERF_CONTEXT_USER before those of the process. Fields are joined in struct order, each
  // up to its first 0. Returns nullopt if the schema has no such field. Valid until the next call.
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

// The call chain of --call-graph lbr, which the CPU recorded as calls that have not returned. As perf makes
// it: the recorded kernel part up to PERF_CONTEXT_USER; then, instead of the user part, the target of the
// newest call and the source of each call, each after a PERF_CONTEXT_USER of its own, since it is not a
// return address. Nothing: the event has no LBR call stack, or the first `max_words` words have no
// PERF_CONTEXT_USER; perf uses the recorded chain then. `scratch` holds the result.
std::optional<format::U64Array> lbr_chain(const format::Sample& sample, const format::EventAttr& attr,
                                          std::size_t max_words, std::vector<std::uint64_t>& scratch);

// An arm64 call chain with the caller of a leaf function. The function may have no frame record, so the
// kernel's walk misses its caller; perf records the link register too, which has the return address. Nothing:
// the chain has the caller, or the event did not record the link register alone. `scratch` holds the result.
std::optional<format::U64Array> chain_with_leaf_caller(
    const format::Sample& sample, const format::EventAttr& attr, symbolize::Unwinder& unwinder,
    const symbolize::SpaceVersion& space, std::endian order, std::vector<std::uint64_t>& scratch);

}  // namespace tacho::report
