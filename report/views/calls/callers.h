// Who called whom: calls of each thread, each below the call that it is inside of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "report/views/calls/call_list.h"

namespace tacho::report {

// By the number of a call in CallList::calls(), once these are sorted.
struct Callers {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  std::vector<std::uint32_t> callers;       // kNone: no followed function called it
  std::vector<std::uint64_t> in_callees;    // ns of its time
  std::vector<bool> has_callees, recurses;  // recurses: a call of its own function is above it
};

Callers find_callers(const CallList& list);

// Begins and ends of calls, in time; what belongs together stands together as long as its thread alone is
// looked at.
struct CallStep {
  std::uint64_t time = 0;  // ns
  std::uint32_t call = 0;
  std::uint32_t level = 0;  // calls around it
  bool is_end = false;
};
std::vector<CallStep> call_steps(const CallList& list, const Callers& tree);

}  // namespace tacho::report
