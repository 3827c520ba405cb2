// Sort keys of memory accesses: what was touched, and what answered.
#pragma once

#include <span>

#include "report/profile/sort_key.h"

namespace tacho::report {

// In perf's order.
std::span<const SortKey> memory_keys();

}  // namespace tacho::report
