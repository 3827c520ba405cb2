// Which branches the processor is to keep, as perf's -j and the term branch_type say it.
#pragma once

#include <cstdint>
#include <string_view>

#include "format/result.h"

namespace tacho::record {

// "any_call,u" as bits of perf_event_attr.branch_sample_type; sides alone (u, k, hv) mean any branch there.
Result<std::uint64_t> parse_branch_filter(std::string_view text);

// What call stacks of the last branches take: the calls outside of the kernel, without what only costs.
std::uint64_t call_stack_branches();

}  // namespace tacho::record
