// Loads users' BPF objects, with the unwinder or without it.
#pragma once

#include <span>
#include <vector>

#include "bpf/loaded_object.h"
#include "bpf/unwinder/stack_walker.h"
#include "bpf/user_object.h"
#include "format/base/result.h"
#include "record/plan/adaptation.h"
#include "record/plan/plan.h"

namespace tacho::record {

struct LoadedObjects {
  std::vector<bpf::LoadedObject> objects;
  Adaptation adaptation;
};
// Loads and attaches the objects, and links the unwinder into those whose events' stacks are unwound.
// `walker`: null: nothing is unwound. If the kernel accepts an object only without the unwinder, its stacks
// are walked by frame pointers.
Result<LoadedObjects> load_objects(const Plan& plan, std::span<const bpf::UserObject> objects,
                                   const bpf::StackWalker* walker);

}  // namespace tacho::record
