// The BPF program that walks users' stacks, compiled when tacho was built: hosts that record need no clang.
#pragma once

#include "format/cursor.h"

namespace tacho::bpf {

// Empty when tacho was built without a clang.
format::Bytes stack_walk_object();
// The same as programs of others run it.
format::Bytes linked_walk_object();

}  // namespace tacho::bpf
