#include "record/objects/channel_rings.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "bpf/object/channel.h"
#include "record/host/host.h"
#include "record/objects/attributed_losses.h"

namespace tacho::record {

bool RateLimit::passes(std::uint64_t time) {
  if (rate_.one_in > 1 && seen_++ % rate_.one_in != 0) return false;
  if (rate_.most_a_second == 0) return true;
  constexpr std::uint64_t kSecond = 1'000'000'000;
  // Late events of the previous second count in this one, so that the limit always holds.
  if (const std::uint64_t second = time / kSecond; second > second_) {
    second_ = second;
    in_second_ = 0;
  }
  if (in_second_ < rate_.most_a_second) {
    ++in_second_;
    return true;
  }
  ++over_;
  return false;
}

Result<ChannelRings> ChannelRings::open(const OpenedRecording& recording, const KernelEvents& events,
                                        const bpf::EventRate& rate) {
  ChannelRings all(recording, events);
  std::vector<Connection> connections = recording.plan.connections;
  connections.insert(connections.end(), recording.plan.unfinished.begin(), recording.plan.unfinished.end());
  for (const Connection& connection : connections) {
    if (connection.kind == bpf::ChannelKind::PerfEventArray || bpf::is_summary(connection.kind)) continue;
    auto ring = recording.objects[connection.object].open_ring(connection.map);
    if (!ring) return std::move(ring.error());
    Source source{.object = connection.object,
                  .event = connection.event,
                  .map = connection.map,
                  .kind = connection.kind,
                  .ring = std::move(*ring),
                  .layout = {},
                  .own = {},
                  .ids = {}};
    const auto& channels = recording.objects[connection.object].channels();
    const auto channel = std::ranges::find(channels, connection.map, &bpf::Channel::map);
    if (channel != channels.end() && channel->schema) source.layout = RingLayout(*channel->schema);
    const bool is_known =
        channel != channels.end() && channel->schema && recording.objects[connection.object].is_shipped();
    source.own = OwnNumbers(recording.numbers, is_known ? &*channel->schema : nullptr);
    if (connection.kind == bpf::ChannelKind::PlainRing) source.limit = RateLimit(rate);
    for (const OpenEvent& event : events.open_events())
      if (event.event == connection.event) source.ids.emplace(event.cpu, event.id);
    // A CPU without an id (it came online later) gets the id of another CPU, as in the kernel's rings.
    for (const int cpu : recording.plan.later_cpus)
      if (!source.ids.empty()) source.ids.emplace(cpu, source.ids.begin()->second);
    if (!source.ids.empty()) all.rings_.push_back(std::move(source));
  }
  return all;
}

std::vector<int> ChannelRings::fds() const {
  std::vector<int> all;
  for (const Source& source : rings_) all.push_back(source.ring.fd());
  return all;
}

void ChannelRings::add_sample(Source& source, format::Bytes bytes, std::vector<std::byte>& to) {
  auto event = source.kind == bpf::ChannelKind::RingWithHeaders
                   ? parse_ring_event(bytes)
                   : RingEvent{.time = monotonic_now(), .cpu = std::nullopt, .payload = bytes};
  if (!event) {  // not from tacho_reserve()
    count_lost(source);
    return;
  }
  if (!events_->was_on(source.event, event->time)) return;
  // CPUs that are not recorded are ignored, as the kernel does for a perf event array.
  const auto id = event->cpu ? source.ids.find(static_cast<int>(*event->cpu)) : source.ids.begin();
  if (id == source.ids.end()) return;
  const auto& follower = recording_->follower;
  if (follower && follower->thread_state(static_cast<int>(event->thread)) != bpf::Followed::Yes) {
    ++dropped_;
    return;
  }
  if (!source.limit.passes(event->time)) return;
  source.own.translate(*event);
  if (!append_sample(to, *event, id->second, recording_->plan.events[source.event].attr, source.layout))
    count_lost(source);
}

bool ChannelRings::take_samples(std::vector<std::byte>& to) {
  bool is_fine = true;
  for (Source& source : rings_) {
    const bool is_taken = source.ring.drain([&](format::Bytes bytes) { add_sample(source, bytes, to); });
    if (!is_taken) count_lost(source);
    is_fine &= is_taken;
  }
  return is_fine;
}

std::uint64_t ChannelRings::over_rate() const {
  std::uint64_t over = 0;
  for (const Source& source : rings_) over += source.limit.over();
  return over;
}

// Losses that the program attributed. `others` is set to those of CPUs that are not recorded.
std::vector<Losses> ChannelRings::attributed_losses(const Source& source, std::uint64_t& others) const {
  std::vector<Losses> attributed;
  read_attributed_losses(recording_->objects[source.object], source.map, [&](const AttributedLoss& loss) {
    const auto id = source.ids.find(loss.cpu);
    if (id == source.ids.end()) {
      others += loss.lost;
    } else {
      attributed.push_back({source.event, id->second, loss.lost, loss.cgroup, loss.first, loss.last});
    }
  });
  return attributed;
}

std::vector<Losses> ChannelRings::losses() const {
  std::vector<Losses> all;
  for (const Source& source : rings_) {
    std::uint64_t known = 0;
    // Read before the total, which programs increase first.
    for (Losses& loss : attributed_losses(source, known)) {
      known += loss.lost;
      all.push_back(loss);
    }
    const std::uint64_t lost = source.lost->load(std::memory_order_relaxed) +
                               recording_->objects[source.object].lost_by_ring(source.map);
    if (lost > known) all.push_back({source.event, source.ids.begin()->second, lost - known});
  }
  return all;
}

}  // namespace tacho::record
