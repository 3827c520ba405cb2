#include "record/stacks/number_runs.h"

#include <algorithm>
#include <iterator>

namespace tacho::record {

std::optional<std::uint32_t> NumberRuns::take(std::uint32_t count, Clock::time_point now) {
  wake(now);
  for (auto run = free_.begin(); run != free_.end(); ++run) {
    const auto [first, room] = *run;
    if (room < count) continue;
    free_.erase(run);
    if (room > count) free_.emplace(first + count, room - count);
    taken_ += count;
    return first;
  }
  return std::nullopt;
}

void NumberRuns::give_back(std::uint32_t first, std::uint32_t count, Clock::time_point now) {
  if (count != 0) resting_.push_back({now, first, count});
}

std::uint32_t NumberRuns::free_later() const {
  std::uint32_t free = size_ - taken_;
  for (const Resting& run : resting_) free += run.count;
  return free;
}

bool NumberRuns::will_have(std::uint32_t count, std::uint32_t anywhere) const {
  if (free_later() < anywhere) return false;
  NumberRuns later(0);
  for (const auto& [first, room] : free_) later.add_free(first, room);
  for (const Resting& run : resting_) later.add_free(run.first, run.count);
  return std::ranges::any_of(later.free_, [count](const auto& run) { return run.second >= count; });
}

void NumberRuns::grow(std::uint32_t more) {
  add_free(size_, more);
  size_ += more;
}

void NumberRuns::wake(Clock::time_point now) {
  while (!resting_.empty() && now - resting_.front().since >= kRest) {
    add_free(resting_.front().first, resting_.front().count);
    taken_ -= resting_.front().count;
    resting_.pop_front();
  }
}

void NumberRuns::add_free(std::uint32_t first, std::uint32_t count) {
  const auto after = free_.lower_bound(first);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == first) {
      first = before->first;
      count += before->second;
      free_.erase(before);
    }
  }
  if (after != free_.end() && first + count == after->first) {
    count += after->second;
    free_.erase(after);
  }
  if (count != 0) free_[first] = count;
}

}  // namespace tacho::record
