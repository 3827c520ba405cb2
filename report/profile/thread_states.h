// What each thread did, one state after another, from its start to its end.
#pragma once

#include <cstdint>
#include <vector>

#include "report/profile/wall_times.h"

namespace tacho::report {

struct StateInterval {
  std::uint64_t begin = 0, end = 0;  // ns, of the recording clock
  WallState state = WallState::Unknown;
  std::uint32_t kept = 0, facts = 0;  // of a wait: as in WallSpan and WallRow; 0: it has none
  std::uint32_t cpu = kNoCpu;         // as in WallSpan
};

// By thread of WallTimes::threads(): its intervals in order, without gaps and overlaps, so that they add up
// to its life. After WallTimes::finish() with an observer.
std::vector<std::vector<StateInterval>> thread_states(const WallTimes& times);

}  // namespace tacho::report
