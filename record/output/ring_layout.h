// What the payload of a ring buffer's events says of the sample around it. For events of perf event arrays
// the kernel walks the stack; what comes through a ring buffer may bring one of another moment, in fields of
// ROLE("stack"), and its weight (bpf/include/tacho/event.h). They become the sample's call chain and period,
// so that every reader of captures has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "format/cursor.h"
#include "format/payload_schema.h"

namespace tacho::record {

// Addresses as the kernel writes call chains: with a mark before its own, and before those of the process.
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
  RingLayout() = default;  // of payloads that nothing is known of
  explicit RingLayout(const format::PayloadSchema& schema);

  bool has_stack() const { return !stacks_.empty(); }
  // The call chain as the kernel writes them: with a mark before its own addresses, and before those of the
  // process.
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

}  // namespace tacho::record
