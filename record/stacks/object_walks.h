// BPF programs of others, in the kernel, with the unwinder in those whose events' stacks are to be unwound.
#pragma once

#include <span>

#include "bpf/stack_walker.h"
#include "bpf/user_object.h"
#include "format/result.h"
#include "record/plan.h"

namespace tacho::record {

// Loads and attaches them. `walker`: null when nothing is unwound. Where the kernel takes an object only
// without the unwinder, its stacks are walked by frame pointers, which `plan` says then.
Result<> load_objects(Plan& plan, std::span<bpf::UserObject> objects, const bpf::StackWalker* walker);

}  // namespace tacho::record
