// Lost samples by event, cgroup and CPU (PERF_RECORD_LOST, read format LOST), and which of them earlier
// files reported.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace tacho::record {

struct Losses {
  std::size_t event = 0;  // index in the plan
  std::uint64_t id = 0;
  std::uint64_t lost = 0;
  std::uint64_t cgroup = 0;                           // the kernel's number; 0: not known
  std::uint64_t first = ~std::uint64_t{0}, last = 0;  // ns; first above last: not known
  int cpu = -1;                                       // where `id` does not say
  bool is_too_deep = false;                           // calls that were nested deeper than the kernel watches
};

// Adds to `all`, which has each event, id, cgroup and CPU once. A loss of 0 adds nothing.
void add_loss(std::vector<Losses>& all, const Losses& loss);

// Losses that earlier files of the same recording have reported.

// An event is lost before it is known of which cgroup it was: so one source's sums by name may go down while
// its total goes up. Reported is the total, once; names get what fits into it.
class ReportedLost {
 public:
  // What was not reported before of `all`, which are sums since the start, each id, cgroup and CPU once.
  std::vector<Losses> news(const std::vector<Losses>& all);

 private:
  struct Reported {
    std::uint64_t lost = 0, last = 0;  // and when
  };
  // By event's id, cgroup, CPU, is_too_deep.
  std::map<std::tuple<std::uint64_t, std::uint64_t, int, bool>, Reported> reported_;
  std::map<std::size_t, std::uint64_t> totals_;  // of those, by event
};

}  // namespace tacho::record
