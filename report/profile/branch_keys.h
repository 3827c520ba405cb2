// Sort keys of branches: where they came from and went to, and how.
#pragma once

#include <span>

#include "report/profile/sort_key.h"

namespace tacho::report {

// In perf's order.
std::span<const SortKey> branch_keys();

}  // namespace tacho::report
