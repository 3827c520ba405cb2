#include "record/kernel/losses.h"

#include <algorithm>

namespace tacho::record {

void add_loss(std::vector<Losses>& all, const Losses& loss) {
  if (loss.lost == 0) return;
  const auto same = std::ranges::find_if(all, [&](const Losses& known) {
    return known.event == loss.event && known.id == loss.id && known.cgroup == loss.cgroup &&
           known.cpu == loss.cpu;
  });
  if (same == all.end()) {
    all.push_back(loss);
    return;
  }
  same->lost += loss.lost;
  same->first = std::min(same->first, loss.first);
  same->last = std::max(same->last, loss.last);
}

}  // namespace tacho::record
