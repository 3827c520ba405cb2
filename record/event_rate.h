// How much of what BPF objects tell is recorded: --sample-rate and --max-rate, for programs that do not ask
// about them in the kernel (tacho/emit.h).
#pragma once

#include <cstdint>

#include "bpf/user_object.h"

namespace tacho::record {

class RateLimit {
 public:
  explicit RateLimit(const bpf::EventRate& rate) : rate_(rate) {}

  // Whether one more event, of that time in ns, is recorded. Times need not ascend: events of other CPUs come
  // late.
  bool passes(std::uint64_t time);
  // What was more than EventRate::most_a_second allows.
  std::uint64_t over() const { return over_; }

 private:
  bpf::EventRate rate_;
  std::uint64_t seen_ = 0, second_ = 0, in_second_ = 0, over_ = 0;
};

}  // namespace tacho::record
