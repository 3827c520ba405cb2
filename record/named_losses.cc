#include "record/named_losses.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "bpf/channel.h"
#include "format/cursor.h"

namespace tacho::record {

void read_named_losses(const bpf::UserObject& object, const std::string& map,
                       const std::function<void(const NamedLoss&)>& sink) {
  const auto losers = object.open_map(bpf::kLosersMap + map);
  if (!losers) return;
  (void)losers->read([&](format::Bytes key, const std::vector<format::Bytes>& values) {
    format::Cursor loser(key), loss(values.empty() ? format::Bytes() : values.front());
    NamedLoss found;
    found.cgroup = loser.u64();
    found.cpu = static_cast<int>(loser.u32());
    found.lost = loss.u64();
    found.first = loss.u64();
    found.last = loss.u64();
    if (!loser.failed() && !loss.failed() && found.lost != 0) sink(found);
  });
}

std::vector<Losses> take_named(Losses& unnamed, const std::vector<NamedLoss>& named) {
  std::vector<Losses> taken;
  for (const NamedLoss& each : named) {
    const std::uint64_t lost = std::min(each.lost, unnamed.lost);
    if (lost == 0) continue;
    taken.push_back({unnamed.event, unnamed.id, lost, each.cgroup, each.first, each.last, unnamed.cpu});
    unnamed.lost -= lost;
  }
  return taken;
}

std::vector<Losses> named_by_programs(const KernelEvents& events, const Prepared& prepared) {
  // Before the kernel's numbers: a program notes a loss when the kernel has counted it.
  std::map<std::pair<std::size_t, int>, std::vector<NamedLoss>> named;  // by event and CPU
  for (const Connection& connection : prepared.plan.connections) {
    if (connection.kind != bpf::ChannelKind::PerfEventArray) continue;
    read_named_losses(prepared.objects[connection.object], connection.map, [&](const NamedLoss& loss) {
      named[{connection.event, loss.cpu}].push_back(loss);
    });
  }
  std::vector<Losses> all = events.losses();
  if (named.empty()) return all;
  std::map<std::uint64_t, int> cpus;
  for (const OpenEvent& open : events.open_events()) cpus.emplace(open.id, open.cpu);
  std::vector<Losses> told;
  for (Losses& loss : all) {
    const auto cpu = cpus.find(loss.id);
    const int known = loss.cpu >= 0 || cpu == cpus.end() ? loss.cpu : cpu->second;
    if (const auto whose = named.find({loss.event, known}); whose != named.end())
      std::ranges::move(take_named(loss, whose->second), std::back_inserter(told));
    if (loss.lost != 0) told.push_back(loss);
  }
  return told;
}

}  // namespace tacho::record
