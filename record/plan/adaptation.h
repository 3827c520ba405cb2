// What of a plan the kernel does not accept, as opening finds out, and the plan that remains.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "format/records/event_attr.h"
#include "record/host/host.h"
#include "record/plan/plan.h"

namespace tacho::record {

struct Adaptation {
  // Events (by index) whose user stacks cannot be unwound in the kernel, and why.
  std::map<std::size_t, std::string> not_unwound;
  std::map<std::size_t, format::EventAttr> attrs;  // of events, in place of the planned ones
  std::size_t ring_pages = 0, sideband_pages = 0;  // 0: as planned
  std::vector<std::string> notes;                  // messages for the user
};

// The plan with these differences.
Plan adapted(Plan plan, const Adaptation& adaptation);

// No user stack is unwound: copies or frame pointers are used. `why`: the reason.
Adaptation without_unwinding(const Plan& plan, const Host& host, const std::string& why);

// Wakes the recorder less often than for each mapping.
void relax_sideband(const Plan& plan, const Host& host, Adaptation& adaptation);

}  // namespace tacho::record
