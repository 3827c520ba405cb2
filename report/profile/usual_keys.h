// Sort keys that any sample has.
#pragma once

#include <span>

#include "report/profile/sort_key.h"

namespace tacho::report {

// In perf's order.
std::span<const SortKey> usual_keys();

}  // namespace tacho::report
