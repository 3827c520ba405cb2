// Call chains that a BPF program put into its payload, in fields tagged ROLE("stack")
// (bpf/include/tacho/event.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "format/container/features.h"
#include "format/records/event_set.h"
#include "format/records/sample.h"

namespace tacho::report {

// Whether the fields of a payload's schema make a call chain.
bool has_payload_stack(const format::PayloadSchema& schema);

// Whether any event of the capture has call chains: those that the kernel recorded, or such in its payload.
bool has_stacks(const format::EventSet& events, const format::Features& features);

class PayloadStacks {
 public:
  // `features` must outlive this.
  explicit PayloadStacks(const format::Features& features) : features_(&features) {}

  // The chain in the sample's payload, leaf first, as the kernel would have recorded it: with a mark before
  // the kernel's addresses and before those of the process. Fields follow one another in the order of the
  // struct; each ends at its first 0. Nothing when the event's payload has no such field. Valid until the
  // next call.
  std::optional<format::U64Array> chain_of(const format::Event& event, std::size_t event_index,
                                           const format::Sample& sample, std::endian order);

 private:
  // A field, by where it lies in the payload.
  struct Place {
    std::uint64_t offset = 0;  // bytes
    std::uint64_t count = 0;   // addresses of 8 bytes; 0: to the payload's end
    enum class Space : std::uint8_t { ByAddress, Kernel, Process } space = Space::ByAddress;
  };
  const std::vector<Place>& places_of(const format::Event& event, std::size_t event_index);
  void append(const Place& place, format::Bytes payload, std::endian order);

  const format::Features* features_;
  std::vector<std::optional<std::vector<Place>>> known_;  // by event
  std::vector<std::uint64_t> chain_;
};

}  // namespace tacho::report
