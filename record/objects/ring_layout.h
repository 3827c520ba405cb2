// The call chain and the weight in the payload of a ring buffer's event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "format/base/cursor.h"
#include "format/extensions/payload_schema.h"

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

}  // namespace tacho::record
