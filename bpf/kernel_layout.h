// Where the running kernel keeps the mappings of processes, as its BTF tells it, for the program that walks
// stacks.
#pragma once

#include "bpf/programs/stack_maps.h"
#include "format/cursor.h"
#include "format/result.h"

namespace tacho::bpf {

// The error says what this kernel has not: maple trees came with Linux 6.1.
Result<tacho_kernel_layout> kernel_layout();
// The same of BTF as a kernel gives it.
Result<tacho_kernel_layout> kernel_layout_in(format::Bytes types);

}  // namespace tacho::bpf
