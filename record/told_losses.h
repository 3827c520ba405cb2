// Which losses files that follow each other have told already.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "record/kernel/losses.h"

namespace tacho::record {

// An event is lost before it is known of which cgroup it was: so one source's sums by name may go down while
// its total goes up. Told is the total, once; names get what fits into it.
class ToldLosses {
 public:
  // What was not told before of `all`, which are sums since the beginning, each id, cgroup and CPU once.
  std::vector<Losses> news(const std::vector<Losses>& all);

 private:
  struct Told {
    std::uint64_t lost = 0, last = 0;  // and when
  };
  std::map<std::tuple<std::uint64_t, std::uint64_t, int>, Told> told_;  // by event's id, cgroup, CPU
  std::map<std::size_t, std::uint64_t> totals_;                         // of those, by event
};

}  // namespace tacho::record
