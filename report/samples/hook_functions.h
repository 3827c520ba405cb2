// Hooks: the kernel's functions through which a tracepoint reaches the event or the BPF program attached to
// it. They are the leaf of the stacks that these take; the thread was in their caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/cursor.h"
#include "format/records/event_attr.h"
#include "symbolize/address_space.h"

namespace tacho::report {

// Whether a function of the kernel is a hook: __traceiter_sched_switch, perf_syscall_enter.
bool is_hook_function(std::string_view name);

// Whether samples of an event are taken by a hook, and have a kernel stack: those of tracepoints and of BPF
// programs. Those of clocks and counters are not: a hook in their stacks is where the thread was.
bool is_taken_by_hook(const format::EventAttr& attr);

class HookFunctions {
 public:
  using Range = std::pair<std::uint64_t, std::uint64_t>;  // [first, second): addresses of a function
  HookFunctions() = default;
  explicit HookFunctions(std::vector<Range> functions);

  // How many addresses at the leaf of a chain are in hooks; 0 unless its first word is PERF_CONTEXT_KERNEL.
  // The outermost kernel function is never counted.
  std::size_t count_at_leaf(const format::U64Array& chain, const symbolize::SpaceVersion& space) const;

 private:
  bool has(std::uint64_t address, const symbolize::SpaceVersion& space) const;
  std::vector<Range> functions_;  // ascending
};

}  // namespace tacho::report
