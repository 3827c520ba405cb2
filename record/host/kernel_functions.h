// Functions of the running kernel by name, as /proc/kallsyms lists them: what a probe may be put on.
#pragma once

#include <cstdint>
#include <map>
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

// Where those begin whose names match a pattern of fnmatch(3) and that many probes at once can be put on:
// `traceable` is what tracefs lists in available_filter_functions, or in the same with _addrs behind it
// (Linux 6.5), which tells the addresses that otherwise kallsyms does. Ascending, each once; none where
// addresses are hidden.
std::vector<std::uint64_t> traceable_functions(std::string_view traceable, bool has_addresses,
                                               std::string_view kallsyms, const std::string& pattern);

// Where functions of exactly these names begin, by name: all places in `kallsyms` of those that `traceable`
// (available_filter_functions) lists; with an empty `traceable` every function may be. The addresses of
// available_filter_functions_addrs lie a little behind the begin on some kernels, which look for it when
// they look for a probe's cookie.
std::map<std::string, std::vector<std::uint64_t>> function_places(std::string_view traceable,
                                                                  std::string_view kallsyms,
                                                                  const std::vector<std::string>& names);

}  // namespace tacho::record
