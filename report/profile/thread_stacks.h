// Stacks of a picture with the time of threads: of waits, or of all their time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "report/profile/stack_names.h"
#include "report/samples/session.h"

namespace tacho::report {

// What waits or times of threads are, and lines about them.
struct TimeFacts {
  std::string what;
  std::vector<std::string> notes;
  bool has_any = false;
};
// Off-CPU waits of threads, each with the stacks of its wakers after a mark. `take` returns whether stacks
// may get longer: without it, the waits that follow have no wakers.
using TakeWait = std::function<bool(std::span<const std::uint32_t> stack, std::uint64_t ns)>;
Result<TimeFacts> read_waits(Session& session, const StackSource& source, StackNames& names,
                             const RunSession& run, const TakeWait& take);
// All time of threads, below their state.
using TakeTime = std::function<void(std::span<const std::uint32_t> stack, double ns)>;
Result<TimeFacts> read_times(Session& session, const StackSource& source, StackNames& names,
                             const RunSession& run, const TakeTime& take);

}  // namespace tacho::report
