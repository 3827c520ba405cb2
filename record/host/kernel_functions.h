// Functions of the running kernel by name, as /proc/kallsyms lists them: what a probe may be put on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/result.h"

namespace tacho::record {

// Whether the kernel or one of its modules has the function and `offset` (bytes from its begin) lies inside.
// The error names the nearest function there is, or the function's length. Where the addresses are hidden
// (kernel.kptr_restrict) offsets are left for the kernel to judge.
Result<> check_kernel_function(std::string_view kallsyms, std::string_view function, std::uint64_t offset);

// All of them, in the order of the list.
std::vector<std::string> kernel_function_names(std::string_view kallsyms);

}  // namespace tacho::record
