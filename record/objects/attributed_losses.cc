#include "record/objects/attributed_losses.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "bpf/object/channel.h"
#include "format/base/cursor.h"

namespace tacho::record {

void read_attributed_losses(const bpf::LoadedObject& object, const std::string& map,
                            const std::function<void(const AttributedLoss&)>& sink) {
  const auto losers = object.open_map(bpf::kLosersMap + map);
  if (!losers) return;
  (void)losers->read_entries([&](format::Bytes key, const std::vector<format::Bytes>& values) {
    format::Cursor loser(key), loss(values.empty() ? format::Bytes() : values.front());
    AttributedLoss found;
    found.cgroup = loser.u64();
    found.cpu = static_cast<int>(loser.u32());
    found.lost = loss.u64();
    found.first = loss.u64();
    found.last = loss.u64();
    if (!loser.failed() && !loss.failed() && found.lost != 0) sink(found);
  });
}

std::vector<Losses> take_attributed(Losses& unnamed, const std::vector<AttributedLoss>& named) {
  std::vector<Losses> taken;
  for (const AttributedLoss& each : named) {
    const std::uint64_t lost = std::min(each.lost, unnamed.lost);
    if (lost == 0) continue;
    taken.push_back({unnamed.event, unnamed.id, lost, each.cgroup, each.first, each.last, unnamed.cpu});
    unnamed.lost -= lost;
  }
  return taken;
}

std::vector<Losses> attributed_by_programs(const KernelEvents& events, const OpenedRecording& recording) {
  // Read before the kernel's counts: a program counts a loss after the kernel did.
  std::map<std::pair<std::size_t, int>, std::vector<AttributedLoss>> named;  // by event and CPU
  for (const Connection& connection : recording.plan.connections) {
    if (connection.kind != bpf::ChannelKind::PerfEventArray) continue;
    read_attributed_losses(recording.objects[connection.object], connection.map,
                           [&](const AttributedLoss& loss) {
                             named[{connection.event, loss.cpu}].push_back(loss);
                           });
  }
  std::vector<Losses> all = events.losses();
  if (named.empty()) return all;
  std::map<std::uint64_t, int> cpus;
  for (const OpenEvent& open : events.open_events()) cpus.emplace(open.id, open.cpu);
  std::vector<Losses> attributed;
  for (Losses& loss : all) {
    const auto cpu = cpus.find(loss.id);
    const int known = loss.cpu >= 0 || cpu == cpus.end() ? loss.cpu : cpu->second;
    if (const auto whose = named.find({loss.event, known}); whose != named.end())
      std::ranges::move(take_attributed(loss, whose->second), std::back_inserter(attributed));
    if (loss.lost != 0) attributed.push_back(loss);
  }
  return attributed;
}

}  // namespace tacho::record
