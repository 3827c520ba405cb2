// The events of a plan, open in the kernel, with their users' stacks.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "bpf/stack_walker.h"
#include "format/result.h"
#include "record/host/host.h"
#include "record/kernel/kernel_events.h"
#include "record/plan.h"
#include "record/stacks/stack_unwinding.h"

namespace tacho::record {

struct UnwoundEvents {
  KernelEvents events;
  std::unique_ptr<StackUnwinding> stacks;  // null: no event has unwound ones
};

// `walker`: none when nothing is unwound. What refuses unwound stacks that nobody asked for by name (-g) has
// the kernel walk them by frame pointers; the plan says so then. `plan` must stay where it is.
Result<UnwoundEvents> open_with_stacks(std::optional<bpf::StackWalker> walker, Plan& plan, const Host& host,
                                       const std::function<bool()>& stop);

}  // namespace tacho::record
