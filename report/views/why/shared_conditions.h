// Conditions and semaphores that the threads that wait for them give back to each other: pools of
// connections, semaphores that are locks. Those of a queue are signalled by others, who bring work.
#pragma once

#include <cstdint>
#include <vector>

#include "report/views/why/causes.h"
#include "report/views/why/thread_spans.h"
#include "report/views/why/wait_facts.h"

namespace tacho::report {

struct SharedCondition {
  Cause cause = Cause::Condition;  // or Lock
  std::uint64_t address = 0;
  std::vector<std::size_t> rows;
  std::vector<WallSpan> spans;  // the waits
};

// Of the rows whose cause is Cause::IdleCondition, if events tell the address of the futex.
std::vector<SharedCondition> shared_conditions(const WallTimes& times, const WaitFactsTable& facts,
                                               const ThreadSpans& spans, const std::vector<Cause>& causes,
                                               NamedChains& stacks);

}  // namespace tacho::report
