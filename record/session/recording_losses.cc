#include "record/session/recording_losses.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "bpf/loaded_object.h"
#include "record/host/attachments.h"
#include "record/kernel/kernel_events.h"
#include "record/objects/attributed_losses.h"
#include "record/plan/plan.h"
#include "record/stacks/stack_unwinding.h"

namespace tacho::record {
namespace {

// Names of the cgroups that lost events; a cgroup that was removed has its id.
std::map<std::uint64_t, std::string> paths_of_cgroups(const std::vector<Losses>& losses) {
  std::map<std::uint64_t, std::string> paths;
  for (const Losses& loss : losses)
    if (loss.cgroup != 0) paths.emplace(loss.cgroup, "cgroup " + std::to_string(loss.cgroup));
  if (paths.empty()) return paths;
  for (const Cgroup& cgroup : all_cgroups())
    if (const auto wanted = paths.find(cgroup.id); wanted != paths.end()) wanted->second = cgroup.path;
  return paths;
}

// What follows the event's name in the list of losses.
std::string_view suffix_of(LossReason reason) {
  switch (reason) {
    case LossReason::TooDeep:
      return " (nested too deep)";
    case LossReason::UnseenEnd:
      return " (end not traced)";
    case LossReason::InBpf:
      return " (a BPF program ran)";
    case LossReason::NoRoom:
      break;
  }
  return "";
}

}  // namespace

std::vector<Losses> recording_losses(const OpenedRecording& recording, const Channels* channels) {
  const KernelEvents& events = recording.events;
  std::vector<Losses> all = attributed_by_programs(events, recording);
  std::vector<bool> is_counted(recording.objects.size());  // by its first event
  for (const Connection& connection : recording.plan.connections) {
    const auto open = std::ranges::find(events.open_events(), connection.event, &OpenEvent::event);
    if (open == events.open_events().end() || is_counted[connection.object]) continue;
    is_counted[connection.object] = true;
    const bpf::LoadedObject& object = recording.objects[connection.object];
    const auto add = [&](std::uint64_t lost, LossReason reason) {
      add_loss(all, {.event = connection.event, .id = open->id, .lost = lost, .reason = reason});
    };
    add(object.too_deep(), LossReason::TooDeep);
    add(object.unseen_ends(), LossReason::UnseenEnd);
  }
  if (auto due = recording.stacks ? events.due_samples() : std::nullopt) {
    due->lost = recording.stacks->left_out_of(due->lost);
    add_loss(all, *due);
  }
  if (channels == nullptr) return all;
  for (const Losses& loss : channels->losses()) add_loss(all, loss);
  return all;
}

format::RecordingLosses losses_in_capture(const std::vector<Losses>& losses, const RecordCounts& counts,
                                          const OpenedRecording& recording,
                                          const std::vector<std::string>& cgroups) {
  format::RecordingLosses found;
  std::map<std::uint64_t, int> cpus;
  std::uint64_t first = counts.lost_first, last = counts.lost_last;
  const auto paths = paths_of_cgroups(losses);
  for (const OpenEvent& open : recording.events.open_events()) cpus.emplace(open.id, open.cpu);
  for (const Losses& loss : losses) {
    const PlannedEvent& event = recording.plan.events[loss.event];
    const auto cpu = cpus.find(loss.id);
    // Others than those of a ring are counted for all CPUs together.
    const int known = cpu == cpus.end() || loss.reason != LossReason::NoRoom ? -1 : cpu->second;
    format::EventLoss at{event.name + std::string(suffix_of(loss.reason)), "",
                         loss.cpu >= 0 ? loss.cpu : known, loss.lost};
    for (std::size_t i = 0; i < std::min(recording.cgroups.size(), cgroups.size()); ++i)
      if (event.cgroup >= 0 && recording.cgroups[i].get() == event.cgroup) at.cgroup = cgroups[i];
    if (loss.cgroup != 0 && at.cgroup.empty()) at.cgroup = paths.at(loss.cgroup);
    found.events.push_back(std::move(at));
    first = std::min(first, loss.first);
    last = std::max(last, loss.last);
  }
  if (last == 0 || counts.samples == 0) return found;
  const auto since_first = [&](std::uint64_t time) { return time - std::min(time, counts.first_time); };
  found.interval = {since_first(first), since_first(last)};
  return found;
}

}  // namespace tacho::record
