// Events of CPUs that were off line for a while.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "format/perf_abi.h"
#include "format/sample.h"
#include "record/kernel/kernel_events.h"
#include "record/kernel/perf_event.h"

namespace tacho::record {

namespace abi = format::abi;

void KernelEvents::Again::each(const std::function<void(const OpenEvent&)>& what) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [cpu, events] : by_cpu_)
    for (const OpenEvent& event : events) what(event);
}

std::span<const OpenEvent> KernelEvents::Again::take(int cpu, std::vector<OpenEvent> events,
                                                     std::vector<Losses> before) {
  const std::lock_guard lock(mutex_);
  for (const Losses& loss : before) add_loss(before_, loss);
  return by_cpu_[cpu] = std::move(events);
}

void KernelEvents::Again::note(std::string cpu, std::string what) {
  const std::lock_guard lock(mutex_);
  constexpr std::size_t kMost = 256;  // of a CPU that comes and goes all day
  if (notes_.size() < kMost) notes_.emplace_back(std::move(cpu), std::move(what));
}

format::StringPairs KernelEvents::Again::notes() const {
  const std::lock_guard lock(mutex_);
  return notes_;
}

std::vector<Losses> KernelEvents::Again::losses(const std::function<Losses(const OpenEvent&)>& of) const {
  const std::lock_guard lock(mutex_);
  std::vector<Losses> all = before_;
  for (const auto& [cpu, events] : by_cpu_)
    for (const OpenEvent& event : events) all.push_back(of(event));
  return all;
}

void KernelEvents::note_cpu(int cpu, const std::string& what) {
  again_->note("CPU " + std::to_string(cpu), what);
}
format::StringPairs KernelEvents::noted_cpus() const { return again_->notes(); }

// What takes its number in the capture from the event that was there before, or from that of another CPU.
Result<OpenEvent> KernelEvents::open_one_again(std::size_t event, int cpu, std::span<const OpenEvent> leaders,
                                               const Host& host) const {
  const PlannedEvent& planned = planned_[event];
  const auto is_model = [&](const OpenEvent& open) { return open.event == event && open.task < 0; };
  auto model = std::ranges::find_if(events_, [&](const OpenEvent& o) { return is_model(o) && o.cpu == cpu; });
  if (model == events_.end()) model = std::ranges::find_if(events_, is_model);
  if (model == events_.end()) return OpenEvent{};  // of tasks
  int leader = -1;
  if (planned.leader && *planned.leader != event) {
    const auto leading = std::ranges::find(leaders, *planned.leader, &OpenEvent::event);
    if (leading == leaders.end()) return OpenEvent{};
    leader = leading->fd.get();
  }
  auto fd = open_event(planned, -1, cpu, leader);
  if (!fd) return explain_refusal(planned, cpu, fd.error().code, host);
  if (!planned.filter.empty()) {
    if (auto done = set_filter(*fd, planned.filter); !done) return std::move(done.error()).in(planned.name);
  }
  const auto id = id_of_event(*fd);
  if (!id) return id.error();
  return OpenEvent{event, cpu, -1, std::move(*fd), model->id, 0, *id, model->cpu != cpu};
}

// The ring that the events of this CPU had; where it had none a new one, which stays for the next time.
Result<> KernelEvents::give_ring(OpenEvent& event, const Host& host) {
  const bool is_sideband = planned_[event.event].is_sideband;
  const auto before = std::ranges::find_if(events_, [&](const OpenEvent& other) {
    return other.cpu == event.cpu && planned_[other.event].is_sideband == is_sideband;
  });
  if (before != events_.end()) {
    event.ring = before->ring;
    return share_ring(event.fd, before->fd);
  }
  const std::pair key{event.cpu, is_sideband};
  if (const auto later = later_rings_.find(key); later != later_rings_.end()) {
    event.ring = later->second.ring;
    return share_ring(event.fd, later->second.owner);
  }
  if (rings_.size() == rings_.capacity()) return Error{"it was not there when the recording began"};
  format::Fd owner(fcntl(event.fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!owner) return system_error("a descriptor of its ring", errno);
  const bool is_backward = planned_[event.event].attr.has(abi::kWriteBackward);
  auto ring = PerfRing::map(event.fd, is_sideband ? sideband_pages_ : ring_pages_, host.page_size,
                            is_backward ? RingKind::Backward : RingKind::Forward);
  if (!ring) return std::move(ring.error());
  ring->end_with(format::sample_id_size(planned_[event.event].attr));
  event.ring = rings_.size();
  rings_.push_back(std::move(*ring));
  holds_sideband_.push_back(is_sideband);
  later_rings_.emplace(key, LaterRing{std::move(owner), event.ring});
  return Done{};
}

// One that is refused is left out, as a probe in a library that cannot be looked up any more.
Result<KernelEvents::Reopened> KernelEvents::open_again(int cpu, const Host& host) {
  std::vector<OpenEvent> opened;
  std::string left_out;
  const auto leave_out = [&](std::size_t event, const std::string& why) {
    left_out += (left_out.empty() ? "" : "; ") + fmt::format("{}: {}", planned_[event].name, why);
  };
  bool any_of_tasks = false;
  for (std::size_t event = 0; event < planned_.size(); ++event) {
    // The counts of a group come by the kernel's numbers, which the capture does not know.
    if (planned_[event].attr.samples(abi::kSampleRead)) {
      leave_out(event, "samples with counts of a group (:S) go on in another recording only");
      continue;
    }
    auto open = open_one_again(event, cpu, opened, host);
    if (open && !open->fd) {
      any_of_tasks = true;
      continue;
    }
    auto done = open ? give_ring(*open, host) : Result<>(std::move(open.error()));
    if (!done) {
      leave_out(event, done.error().what);
      continue;
    }
    opened.push_back(std::move(*open));
  }
  if (opened.empty() && !any_of_tasks) return Error{left_out};
  for (const OpenEvent& open : opened) rings_[open.ring].rename(open.own_id, open.id);
  std::vector<Losses> before;
  again_->each([&](const OpenEvent& gone) {
    if (gone.cpu == cpu) before.push_back(loss_of(gone));
  });
  return Reopened{again_->take(cpu, std::move(opened), std::move(before)), std::move(left_out)};
}

void KernelEvents::close_again(int cpu) {
  std::vector<Losses> before;
  again_->each([&](const OpenEvent& gone) {
    if (gone.cpu == cpu) before.push_back(loss_of(gone));
  });
  (void)again_->take(cpu, {}, std::move(before));
}

Result<> KernelEvents::enable_again(std::span<const OpenEvent> events) const {
  for (const OpenEvent& event : events) {
    const std::vector<Switched>& switched = (*switched_)[event.event];
    const bool is_on = planned_[event.event].is_sideband || (!switched.empty() && switched.back().on);
    if (!is_on) continue;
    if (auto done = enable_event(event.fd); !done) return done;
  }
  return Done{};
}

}  // namespace tacho::record
