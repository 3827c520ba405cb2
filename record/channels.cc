#include "record/channels.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "record/followed_objects.h"

namespace tacho::record {
namespace {

// The kernel's numbers of the events that these objects feed through perf event arrays.
std::vector<std::uint64_t> ids_fed_by(const std::vector<std::size_t>& objects, const Prepared& prepared,
                                      const KernelEvents& events) {
  std::vector<std::uint64_t> ids;
  for (const OpenEvent& event : events.open_events()) {
    const bool is_fed = std::ranges::any_of(prepared.plan.connections, [&](const Connection& each) {
      return each.event == event.event && each.kind == bpf::ChannelKind::PerfEventArray &&
             std::ranges::find(objects, each.object) != objects.end();
    });
    if (is_fed) ids.push_back(event.id);
  }
  return ids;
}

// Those whose programs follow objects from a followed thread into others, and have asked by themselves.
std::vector<std::size_t> wandering_objects(const Prepared& prepared) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < prepared.objects.size(); ++i)
    if (follows_objects_anywhere(prepared.objects[i])) found.push_back(i);
  return found;
}

}  // namespace

Result<> tell_objects(Prepared& prepared, const bpf::EventRate& rate, const Messages& messages) {
  if (rate.limits() && prepared.objects.empty())
    return use_error(
        "--sample-rate and --max-rate are for events of BPF objects (-e PROGRAM.bpf.c); -c N takes every "
        "Nth of other events, -F a number a second");
  for (std::size_t i = 0; i < prepared.objects.size(); ++i) {
    bpf::UserObject& object = prepared.objects[i];
    const bool asks = object.limit(rate);
    if (!asks) prepared.limited_here.push_back(i);
    if (prepared.follower) (void)object.follow(prepared.follower->table_fd());
    if (!asks && (rate.limits() || prepared.follower))
      messages.detail(object.path() +
                      ": does not ask tacho_wants() (tacho/emit.h); what is not wanted is dropped here");
  }
  return Done{};
}

Result<Channels> Channels::open(Prepared& prepared, const KernelEvents& events, const bpf::EventRate& rate,
                                const SummaryReading& reading) {
  Channels channels(prepared);
  auto rings = ChannelRings::open(prepared, events, rate);
  if (!rings) return std::move(rings.error());
  channels.rings_ = std::make_shared<ChannelRings>(std::move(*rings));
  auto summaries = Summaries::open(prepared, events, reading);
  if (!summaries) return std::move(summaries.error());
  channels.summaries_ = std::make_shared<Summaries>(std::move(*summaries));
  if (!channels.rings_->empty() || !channels.summaries_->empty())
    prepared.ring_losses = [rings = channels.rings_, summaries = channels.summaries_] {
      auto all = rings->losses();
      for (const Losses& loss : summaries->losses()) all.push_back(loss);
      return all;
    };
  if (!channels.summaries_->empty())
    prepared.summary_troubles = [summaries = channels.summaries_] { return summaries->troubles(); };
  const bool limits_here = rate.limits() && !prepared.limited_here.empty();
  if (!prepared.follower && !limits_here) return channels;
  std::vector<std::uint64_t> sifted =
      prepared.follower ? events.ids_of_everybody() : std::vector<std::uint64_t>();
  const auto unsifted = ids_fed_by(wandering_objects(prepared), prepared, events);
  std::erase_if(sifted, [&](std::uint64_t id) { return std::ranges::find(unsifted, id) != unsifted.end(); });
  channels.sieve_.emplace(std::move(sifted), [&prepared](int thread) {
    return prepared.follower->state(thread) == bpf::Followed::Yes;
  });
  if (limits_here) channels.sieve_->limit(ids_fed_by(prepared.limited_here, prepared, events), rate);
  return channels;
}

Channels::LeftOut Channels::left_out() const {
  LeftOut all{rings_->dropped(), rings_->over_rate()};
  if (sieve_) {
    all.of_others += sieve_->dropped();
    all.over_rate += sieve_->over_rate();
  }
  for (const bpf::UserObject& object : prepared_->objects) all.over_rate += object.over_rate();
  return all;
}

void tell_what_was_left_out(const Channels::LeftOut& left_out, const bpf::EventRate& rate,
                            const Messages& messages) {
  if (left_out.of_others != 0)
    messages.note(fmt::format(
        "{} events of BPF programs were of other threads and left out here; a program of yours leaves "
        "them out in the kernel, before their stacks are walked, with tacho_wants() (tacho/emit.h)",
        left_out.of_others));
  if (left_out.over_rate != 0)
    messages.note(fmt::format("{} events of BPF programs were more than {} and left out", left_out.over_rate,
                              rate.most_a_second == 0 ? "the rate that their recorder was given"
                                                      : fmt::format("--max-rate {}", rate.most_a_second)));
}

}  // namespace tacho::record
