#include "record/loss_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace tacho::record {
namespace {

constexpr std::size_t kMostEvents = 4;
constexpr std::size_t kMostCpus = 8;

struct EventLoss {
  std::string event;
  std::uint64_t lost = 0;
  std::map<int, std::uint64_t> cpus;
};

std::string cpus_of(const EventLoss& loss) {
  if (loss.cpus.begin()->first < 0) return "";
  if (loss.cpus.size() == 1) return fmt::format(" (CPU {})", loss.cpus.begin()->first);
  std::vector<std::pair<int, std::uint64_t>> cpus(loss.cpus.begin(), loss.cpus.end());
  std::ranges::stable_sort(cpus, std::ranges::greater{}, &std::pair<int, std::uint64_t>::second);
  std::string text;
  for (std::size_t i = 0; i < std::min(cpus.size(), kMostCpus); ++i)
    text += fmt::format("{}CPU {}: {}", i == 0 ? "" : ", ", cpus[i].first, cpus[i].second);
  if (cpus.size() > kMostCpus) text += fmt::format(", {} more", cpus.size() - kMostCpus);
  return " (" + text + ")";
}

}  // namespace

std::string where_lost(std::span<const LossAt> losses) {
  std::vector<EventLoss> events;
  for (const LossAt& loss : losses) {
    auto event = std::ranges::find(events, loss.event, &EventLoss::event);
    if (event == events.end()) event = events.insert(event, EventLoss{loss.event, 0, {}});
    event->lost += loss.lost;
    event->cpus[loss.cpu] += loss.lost;
  }
  std::ranges::stable_sort(events, std::ranges::greater{}, &EventLoss::lost);
  std::string text;
  for (std::size_t i = 0; i < std::min(events.size(), kMostEvents); ++i)
    text += fmt::format("{}{} {}{}", i == 0 ? "" : "; ", events[i].event, events[i].lost, cpus_of(events[i]));
  if (events.size() > kMostEvents) text += fmt::format("; {} more events", events.size() - kMostEvents);
  return text;
}

std::string when_lost(const RecordCounts& counts) {
  if (counts.lost_last == 0 || counts.samples == 0) return "";
  const auto seconds = [&](std::uint64_t time) {
    return static_cast<double>(time - std::min(time, counts.first_time)) / 1e9;
  };
  return fmt::format("from {:.3f} s to {:.3f} s after the first sample", seconds(counts.lost_first),
                     seconds(counts.lost_last));
}

}  // namespace tacho::record
