// Which samples are given, and how much of their call chains.
#pragma once

#include <cstddef>

#include "report/samples/filter.h"

namespace tacho::report {

struct SampleOptions {
  Filter filter;
  std::size_t max_stack = 127;  // frames of a call chain
  bool wants_stacks = true;     // false: samples come without their call chains
  // Whether a payload's fields tagged ROLE("stack") are the call chain, in place of what the kernel recorded.
  bool wants_payload_stacks = true;
  bool leaves_out_guests = false;  // samples of guests, whose cpumode is 4 or 5
  bool keeps_callers = false;  // of a recorded chain with more frames, the outermost: perf with caller first
  bool condition_asks_for_names = false;  // the filter's, once it is bound
  bool keeps_addresses = false;  // processes that loaded a module elsewhere have places of their own in it
};

}  // namespace tacho::report
