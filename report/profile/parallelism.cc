#include "report/profile/parallelism.h"

#include <algorithm>
#include <limits>

namespace tacho::report {

void Parallelism::take(const format::Record& record) {
  if (const auto* const change = std::get_if<format::SwitchRecord>(&record)) {
    // Switches of a whole machine count everybody's threads, not a command's.
    if (!change->is_cpu_wide) running_ += change->is_out ? -1 : 1;
  } else if (const auto* const task = std::get_if<format::TaskRecord>(&record)) {
    // The kernel forgets a thread's events before it leaves the processor for good.
    if (task->is_exit) --running_;
  }
}

std::uint32_t Parallelism::now() const {
  const std::int64_t most = processors_.value_or(std::numeric_limits<std::uint32_t>::max());
  return static_cast<std::uint32_t>(std::max<std::int64_t>(1, std::min(running_, most)));
}

}  // namespace tacho::report
