#include "record/session/capture_end.h"

#include <algorithm>
#include <map>
#include <utility>

#include "format/base/byte_writer.h"
#include "format/container/features.h"
#include "format/records/record.h"
#include "record/host/attachments.h"
#include "record/objects/channel_rings.h"
#include "record/stacks/stack_choice.h"
#include "record/stacks/stack_unwinding.h"

namespace tacho::record {
namespace {

// Of the cgroups that losses are of; one that is gone has its number.
std::map<std::uint64_t, std::string> paths_of_cgroups(const std::vector<Losses>& losses) {
  std::map<std::uint64_t, std::string> paths;
  for (const Losses& loss : losses)
    if (loss.cgroup != 0) paths.emplace(loss.cgroup, "cgroup " + std::to_string(loss.cgroup));
  if (paths.empty()) return paths;
  for (const Cgroup& cgroup : all_cgroups())
    if (const auto wanted = paths.find(cgroup.id); wanted != paths.end()) wanted->second = cgroup.path;
  return paths;
}

}  // namespace

std::vector<DroppingProgram> new_dropping_programs(const OpenedRecording& recording) {
  auto now = dropping_programs(*recording.plan, recording.events, recording.objects);
  std::erase_if(now, [&](const DroppingProgram& each) {
    return std::ranges::any_of(recording.dropping, [&](const DroppingProgram& known) {
      return known.program.id == each.program.id;
    });
  });
  return now;
}

std::vector<Losses> all_losses(const OpenedRecording& recording, const Channels* channels) {
  const KernelEvents& events = recording.events;
  std::vector<Losses> all = attributed_by_programs(events, recording);
  for (const Connection& connection : recording.plan->connections) {
    const std::uint64_t lost = recording.objects[connection.object].too_deep();
    const auto open = std::ranges::find(events.open_events(), connection.event, &OpenEvent::event);
    if (lost != 0 && open != events.open_events().end())
      add_loss(all, {.event = connection.event, .id = open->id, .lost = lost, .is_too_deep = true});
  }
  if (channels == nullptr) return all;
  for (const Losses& loss : channels->losses()) add_loss(all, loss);
  return all;
}

format::RecordingLosses described(const std::vector<Losses>& losses, const RecordCounts& counts,
                                  const OpenedRecording& recording, const std::vector<std::string>& cgroups) {
  format::RecordingLosses found;
  std::map<std::uint64_t, int> cpus;
  std::uint64_t first = counts.lost_first, last = counts.lost_last;
  const auto paths = paths_of_cgroups(losses);
  for (const OpenEvent& open : recording.events.open_events()) cpus.emplace(open.id, open.cpu);
  for (const Losses& loss : losses) {
    const PlannedEvent& event = recording.plan->events[loss.event];
    const auto cpu = cpus.find(loss.id);
    const int known = cpu == cpus.end() ? -1 : cpu->second;
    const std::string name = event.name + (loss.is_too_deep ? " nested too deep" : "");
    format::EventLoss at{name, "", loss.cpu >= 0 ? loss.cpu : known, loss.lost};
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

Result<> CaptureEnd::write(const RecordCounts& counts, CaptureOutput& output) {
  format::ByteWriter records;
  const std::vector<Losses> losses = reported_.news(all_losses(recording_, channels_));
  for (const Losses& loss : losses)
    format::write_lost_samples(records, loss.lost, recording_.plan->events[loss.event].attr, loss.id);
  if (!records.empty()) {
    if (auto done = output.write_plain(records.view()); !done) return done;
    if (auto done = output.finish_round(); !done) return done;
  }
  format::Features late;
  if (counts.samples != 0) late.environment.sample_time = {counts.first_time, counts.last_time};
  late.environment.losses = described(losses, counts, recording_, cgroups_);
  if (auto added = new_dropping_programs(recording_); !added.empty()) {
    added.insert(added.begin(), recording_.dropping.begin(), recording_.dropping.end());
    late.environment.attached_programs = attached_programs(recording_.objects, added);
  }
  late.environment.cpu_changes = recording_.events.noted_cpus();
  if (recording_.stacks) {
    const StackCounts now = recording_.stacks->counts();
    late.environment.user_stacks = facts_of_choice(*recording_.plan);
    for (auto& fact : facts_of(now - reported_stacks_))
      late.environment.user_stacks.push_back(std::move(fact));
    reported_stacks_ = now;
  }
  return output.close(late);
}

}  // namespace tacho::record
