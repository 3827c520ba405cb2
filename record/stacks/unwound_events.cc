#include "record/stacks/unwound_events.h"

#include <utility>

#include "record/stacks/stack_choice.h"

namespace tacho::record {

Result<UnwoundEvents> open_with_stacks(std::optional<bpf::StackWalker> walker, Plan& plan, const Host& host,
                                       const std::function<bool()>& stop) {
  {
    auto events = KernelEvents::open(plan, host, stop);
    if (!events) return std::move(events.error());
    if (!walker) return UnwoundEvents{std::move(*events), nullptr};
    auto stacks = StackUnwinding::create(std::move(walker), plan, *events, host);
    if (stacks) return UnwoundEvents{std::move(*events), std::move(*stacks)};
    if (!may_use_frame_pointers(plan)) return std::move(stacks.error());
    use_frame_pointers(plan, host, stacks.error().what);
  }  // closed before the others are opened: their rings take the same memory
  auto events = KernelEvents::open(plan, host, stop);
  if (!events) return std::move(events.error());
  return UnwoundEvents{std::move(*events), nullptr};
}

}  // namespace tacho::record
