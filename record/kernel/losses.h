// Lost samples, by event, cgroup and CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace tacho::record {

// Why samples were lost.
enum class LossReason : std::uint8_t {
  NoRoom,     // in a ring, a ring buffer or a map
  TooDeep,    // calls nested deeper than the kernel can follow
  UnseenEnd,  // waits and calls whose end the kernel did not trace
  InBpf,      // samples of a clock while a BPF program ran
};

// Lost samples by event, cgroup and CPU (PERF_RECORD_LOST, read format LOST).
struct Losses {
  std::size_t event = 0;  // index in the plan
  std::uint64_t id = 0;
  std::uint64_t lost = 0;
  std::uint64_t cgroup = 0;                           // id; 0: unknown
  std::uint64_t first = ~std::uint64_t{0}, last = 0;  // ns; first above last: unknown
  int cpu = -1;                                       // set if `id` does not determine it
  LossReason reason = LossReason::NoRoom;
};

// Adds a loss to `all`, which has each combination of event, id, cgroup, CPU and reason once. A loss of 0 is
// ignored.
void add_loss(std::vector<Losses>& all, const Losses& loss);

// The losses that earlier files of the same recording reported. The kernel counts a loss before a program
// attributes it to a cgroup, so sums by cgroup may go down while the total goes up: totals are reported once,
// and attributed up to the total.
class ReportedLost {
 public:
  // The part of `all`, the sums since the start, that was not reported before.
  std::vector<Losses> take_unreported(const std::vector<Losses>& all);

 private:
  struct Reported {
    std::uint64_t lost = 0, last = 0;  // `last`: time, ns
  };
  // By event's id, cgroup, CPU, reason.
  std::map<std::tuple<std::uint64_t, std::uint64_t, int, LossReason>, Reported> reported_;
  std::map<std::size_t, std::uint64_t> totals_;  // sums by event
};

}  // namespace tacho::record
