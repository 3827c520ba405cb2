#include "record/kernel/losses.h"

#include <algorithm>

namespace tacho::record {

void add_loss(std::vector<Losses>& all, const Losses& loss) {
  if (loss.lost == 0) return;
  const auto same = std::ranges::find_if(all, [&](const Losses& known) {
    return known.event == loss.event && known.id == loss.id && known.cgroup == loss.cgroup &&
           known.cpu == loss.cpu && known.reason == loss.reason;
  });
  if (same == all.end()) {
    all.push_back(loss);
    return;
  }
  same->lost += loss.lost;
  same->first = std::min(same->first, loss.first);
  same->last = std::max(same->last, loss.last);
}

std::vector<Losses> ReportedLost::take_unreported(const std::vector<Losses>& all) {
  std::map<std::size_t, std::uint64_t> left;  // to report, by event
  for (const Losses& loss : all) left[loss.event] += loss.lost;
  for (auto& [event, lost] : left) lost -= std::min(lost, totals_[event]);
  std::vector<Losses> news;
  const auto report = [&](const Losses& loss) {
    Reported& reported = reported_[{loss.id, loss.cgroup, loss.cpu, loss.reason}];
    const std::uint64_t lost = std::min(loss.lost - std::min(loss.lost, reported.lost), left[loss.event]);
    if (lost == 0) return;
    Losses& since = news.emplace_back(loss);
    since.lost = lost;
    since.first = std::max(loss.first, reported.last);
    reported = {reported.lost + lost, loss.last};
    totals_[loss.event] += lost;
    left[loss.event] -= lost;
  };
  // Losses that no program attributed are reported last: they may be attributed next time.
  const auto is_attributed = [](const Losses& loss) { return loss.cgroup != 0 || loss.first <= loss.last; };
  for (const bool attributed : {true, false})
    for (const Losses& loss : all)
      if (is_attributed(loss) == attributed) report(loss);
  return news;
}

}  // namespace tacho::record
