#include "report/profile/thread_states.h"

#include <algorithm>
#include <span>

namespace tacho::report {
namespace {

// A thread's intervals while they are added, in order.
class Lane {
 public:
  Lane(std::vector<StateInterval>& to, const WallThread& thread, std::span<const WallGap> gaps)
      : to_(to), gaps_(gaps), at_(thread.begin), end_(thread.end) {}

  void add_wait(const StateInterval& wait) {
    fill(std::min(wait.begin, end_));
    append(wait);
  }
  void finish() { fill(end_); }

 private:
  // Between waits the thread was on the CPU, unless there is a gap.
  void fill(std::uint64_t until) {
    for (; !gaps_.empty() && at_ < until; gaps_ = gaps_.subspan(1)) {
      const WallGap& gap = gaps_.front();
      if (gap.begin >= until) break;
      append({at_, gap.begin, WallState::OnCpu});
      append({at_, std::min(gap.end, until), gap.state});
      if (gap.end > until) return;  // it goes on after the wait
    }
    append({at_, until, WallState::OnCpu});
  }
  void append(StateInterval interval) {
    interval.begin = std::max(interval.begin, at_);
    interval.end = std::min(interval.end, end_);
    if (interval.begin >= interval.end) return;
    at_ = interval.end;
    const bool goes_on = !to_.empty() && interval.kept == 0 && interval.facts == 0 && to_.back().kept == 0 &&
                         to_.back().facts == 0 && to_.back().state == interval.state;
    if (goes_on) {
      to_.back().end = interval.end;
      to_.back().cpu = interval.cpu;
    } else {
      to_.push_back(interval);
    }
  }

  std::vector<StateInterval>& to_;
  std::span<const WallGap> gaps_;  // that do not end before at_
  std::uint64_t at_, end_;
};

}  // namespace

std::vector<std::vector<StateInterval>> thread_states(const WallTimes& times) {
  const std::size_t count = times.threads().size();
  std::vector<std::vector<StateInterval>> waits(count), states(count);
  std::vector<std::vector<WallGap>> gaps(count);
  for (const WallSpan& span : times.spans()) {
    if (span.begin >= span.end) continue;  // a sample
    const WallRow& row = times.rows()[span.row];
    waits[row.thread].push_back({span.begin, span.end, row.state, span.kept, row.facts, span.cpu});
  }
  for (const WallGap& gap : times.gaps()) gaps[gap.thread].push_back(gap);
  for (std::size_t i = 0; i < count; ++i) {
    std::ranges::stable_sort(waits[i], {}, &StateInterval::begin);
    std::ranges::stable_sort(gaps[i], {}, &WallGap::begin);
    Lane lane(states[i], times.threads()[i], gaps[i]);
    for (const StateInterval& wait : waits[i]) lane.add_wait(wait);
    lane.finish();
    waits[i] = {};
  }
  return states;
}

}  // namespace tacho::report
