#include "format/container/loss_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace tacho::format {
namespace {

constexpr std::size_t kMostEvents = 4;
constexpr std::size_t kMostListedCpus = 8;

struct LossOfEvent {
  std::string event;
  std::uint64_t lost = 0;
  std::map<int, std::uint64_t> cpus;
};

std::string cpus_of(const LossOfEvent& loss) {
  if (loss.cpus.begin()->first < 0) return "";
  if (loss.cpus.size() == 1) return " (CPU " + std::to_string(loss.cpus.begin()->first) + ')';
  std::vector<std::pair<int, std::uint64_t>> cpus(loss.cpus.begin(), loss.cpus.end());
  std::ranges::stable_sort(cpus, std::ranges::greater{}, &std::pair<int, std::uint64_t>::second);
  std::string text;
  for (std::size_t i = 0; i < std::min(cpus.size(), kMostListedCpus); ++i)
    text +=
        (i == 0 ? "CPU " : ", CPU ") + std::to_string(cpus[i].first) + ": " + std::to_string(cpus[i].second);
  if (cpus.size() > kMostListedCpus) text += ", " + std::to_string(cpus.size() - kMostListedCpus) + " more";
  return " (" + text + ")";
}

std::string seconds(std::uint64_t ns) {
  const std::uint64_t ms = ns / 1'000'000;
  const std::string rest = std::to_string(ms % 1000);
  return std::to_string(ms / 1000) + '.' + std::string(3 - rest.size(), '0') + rest + " s";
}

}  // namespace

std::string where_lost(std::span<const EventLoss> losses) {
  std::vector<LossOfEvent> events;
  std::map<std::string, std::size_t> places;
  for (const EventLoss& loss : losses) {
    const std::string name = loss.cgroup.empty() ? loss.event : loss.event + " in " + loss.cgroup;
    const auto [place, is_new] = places.emplace(name, events.size());
    if (is_new) events.push_back({name, 0, {}});
    LossOfEvent& event = events[place->second];
    event.lost += loss.lost;
    event.cpus[loss.cpu] += loss.lost;
  }
  std::ranges::stable_sort(events, std::ranges::greater{}, &LossOfEvent::lost);
  std::string text;
  for (std::size_t i = 0; i < std::min(events.size(), kMostEvents); ++i)
    text +=
        (i == 0 ? "" : "; ") + events[i].event + ' ' + std::to_string(events[i].lost) + cpus_of(events[i]);
  if (events.size() > kMostEvents)
    text += "; " + std::to_string(events.size() - kMostEvents) + " more events";
  return text;
}

std::string when_lost(const RecordingLosses& losses) {
  if (!losses.interval) return "";
  return "from " + seconds(losses.interval->first) + " to " + seconds(losses.interval->second) +
         " after the first sample";
}

std::string where_and_when_lost(const RecordingLosses& losses) {
  const std::string where = where_lost(losses.events), when = when_lost(losses);
  return where + (where.empty() || when.empty() ? "" : ", ") + when;
}

}  // namespace tacho::format
