#include "record/kernel/kernel_events.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "format/records/perf_abi.h"
#include "format/records/sample.h"
#include "record/kernel/perf_event.h"

namespace tacho::record {

namespace {

namespace abi = format::abi;

// Features that kernels older than 6.1 may refuse, newest first, and what is lost without them.
struct Newer {
  std::uint64_t format::EventAttr::*field;
  std::uint64_t bits;
  const char* loss;
};
constexpr Newer kNewer[] = {
    {&format::EventAttr::read_format, abi::kReadLost, "losses are counted by CPU, not by event (Linux 6.0)"},
    {&format::EventAttr::flags, abi::kBuildId, "mappings have no build ids (Linux 5.12)"},
    {&format::EventAttr::sample_type, abi::kSampleCgroup,
     "samples have no cgroup (Linux 5.7, CONFIG_CGROUP_PERF)"},
    {&format::EventAttr::flags, abi::kCgroup, "cgroups that are created meanwhile have no names (Linux 5.7)"},
    {&format::EventAttr::flags, abi::kBpfEvent | abi::kKsymbol,
     "BPF programs that are loaded meanwhile have no names (Linux 5.1)"},
    {&format::EventAttr::flags, abi::kCommExec, "a new name by exec looks like any other (Linux 3.16)"},
};

// Opens `event`, and removes the flags that the kernel does not know from its attr.
Result<format::Fd> open_adapted(PlannedEvent& event, int task, int cpu, int leader,
                                std::vector<std::string>& notes) {
  auto fd = open_event(event, task, cpu, leader);
  constexpr std::uint64_t kOnePrecise = std::uint64_t{1} << abi::kPreciseIpShift;
  constexpr std::uint64_t kPrecise = 3 * kOnePrecise;
  while (!fd && event.most_precise && (event.attr.flags & kPrecise) != 0) {
    event.attr.flags -= kOnePrecise;
    fd = open_event(event, task, cpu, leader);
  }
  // The kernel records namespaces only for users who may record the whole system.
  if (!fd && fd.error().code == EACCES && event.attr.has(abi::kNamespaces)) {
    event.attr.flags &= ~std::uint64_t{abi::kNamespaces};
    fd = open_event(event, task, cpu, leader);
  }
  for (const Newer& newer : kNewer) {
    if (fd || fd.error().code != EINVAL) break;
    if ((event.attr.*newer.field & newer.bits) == 0) continue;
    const format::EventAttr before = event.attr;
    event.attr.*newer.field &= ~newer.bits;
    fd = open_event(event, task, cpu, leader);
    if (fd) notes.push_back("this kernel is older: " + event.name + ": " + newer.loss);
  }
  return fd;
}

// "sched:sched_switch:u" without ":u".
std::string without_modifiers(const std::string& tracepoint) {
  const std::size_t colon = tracepoint.find(':');
  return colon == std::string::npos ? tracepoint : tracepoint.substr(0, tracepoint.find(':', colon + 1));
}

// The fields that a filter can use, for the message that the kernel does not understand one.
std::string fields_of(const PlannedEvent& event) {
  const std::string has =
      event.filter_fields.empty() ? "its fields: " : "it has " + event.filter_fields + "; ";
  return has + "tacho list -v " + without_modifiers(event.name) +
         (event.filter_fields.empty() ? "" : " has their types");
}

}  // namespace

KernelEvents::KernelEvents(const Plan& plan)
    : planned_(plan.events), ring_pages_(plan.ring_pages), sideband_pages_(plan.sideband_pages) {}

Result<KernelEvents> KernelEvents::open(const Plan& plan, const Host& host,
                                        const std::function<bool()>& stop) {
  KernelEvents events(plan);
  for (;;) {
    if (auto done = events.open_everywhere(plan, host, stop); !done) return std::move(done.error());
    auto mapped = events.map_rings(host);
    if (mapped) break;
    if (mapped.error().code == ENOMEM)
      return Error{
          fmt::format("-m: there is no memory for rings of {} MiB, one for each CPU; below 2 GiB each "
                      "is possible, if ulimit -v allows it",
                      (events.ring_pages_ * host.page_size) >> 20),
          ENOMEM};
    const bool can_shrink = events.ring_pages_ > 1 || events.sideband_pages_ > 1;
    if (mapped.error().code != EPERM || !can_shrink) return std::move(mapped.error());
    events.halve_rings(host.page_size);
  }
  events.note_adaptation(plan);
  // Rings must not move: there are pointers to them.
  events.rings_.reserve(events.rings_.size() + 2 * plan.later_cpus.size());
  events.switched_ = std::make_shared<std::vector<std::vector<Switched>>>(plan.events.size());
  return events;
}

// Closes the events, since their watermarks change, too.
void KernelEvents::halve_rings(std::size_t page_size) {
  rings_.clear();
  holds_sideband_.clear();
  leaders_.clear();
  events_.clear();
  (ring_pages_ >= sideband_pages_ ? ring_pages_ : sideband_pages_) /= 2;
  for (PlannedEvent& event : planned_) {
    const std::size_t pages = event.is_sideband ? sideband_pages_ : ring_pages_;
    if (event.attr.wakeup != 1) event.attr.wakeup = static_cast<std::uint32_t>(pages * page_size / 4);
  }
}

// Notes what differs from the plan; open_adapted() has added its messages.
void KernelEvents::note_adaptation(const Plan& plan) {
  for (std::size_t event = 0; event < planned_.size(); ++event)
    if (planned_[event].attr != plan.events[event].attr)
      adaptation_.attrs.emplace(event, planned_[event].attr);
  if (ring_pages_ != plan.ring_pages)
    adaptation_.notes.push_back(
        fmt::format("-m: the limit of locked memory is too low; rings have {} pages instead of {} (raise "
                    "`ulimit -l` or kernel.perf_event_mlock_kb)",
                    ring_pages_, plan.ring_pages));
  adaptation_.ring_pages = ring_pages_;
  adaptation_.sideband_pages = sideband_pages_;
}

Result<> KernelEvents::open_everywhere(const Plan& plan, const Host& host,
                                       const std::function<bool()>& stop) {
  // The sideband event is last in the capture, but its failure (or success) must not depend on the others.
  for (std::size_t event = 0; event < plan.events.size(); ++event) {
    bool any = false;
    Result<> done = Done{};
    for (const int task : plan.events[event].system_wide ? std::vector{-1} : plan.tasks) {
      if (stop()) return Error{"stopped by a signal", EINTR};
      done = open_on_cpus(plan, event, task, host);
      if (done) any = true;
      // A thread may have ended since it was listed.
      if (!done && done.error().code != ESRCH) return done;
    }
    if (!any) return done;
  }
  open_uninherited_events(plan);
  return Done{};
}

// Without one, the clocks of a thread that starts processes are as perf's without its BPF events: worse, no
// error.
void KernelEvents::open_uninherited_events(const Plan& plan) {
  uninherited_.clear();
  const auto is_inherited = [](const PlannedEvent& event) {
    return !event.system_wide && event.attr.has(abi::kInherit);
  };
  if (std::ranges::none_of(planned_, is_inherited)) return;
  for (const int task : plan.tasks)
    if (auto opened = open_uninherited_event(task)) uninherited_.push_back(std::move(*opened));
}

Result<> KernelEvents::open_on_cpus(const Plan& plan, std::size_t event, int task, const Host& host) {
  for (const int cpu : plan.cpus) {
    const auto leader = leader_of(event, task, cpu);
    if (!leader) return leader.error();
    auto fd = open_adapted(planned_[event], task, cpu, *leader, adaptation_.notes);
    if (!fd) return explain_refusal(planned_[event], cpu, fd.error().code, host);
    if (const PlannedEvent& planned = planned_[event]; !planned.filter.empty()) {
      auto done = set_filter(*fd, planned.filter);
      if (!done && done.error().fault == Fault::Use) done.error().what += "; " + fields_of(planned);
      if (!done) return std::move(done.error()).in(planned.name);
    }
    const auto id = id_of_event(*fd);
    if (!id) return id.error();
    if (planned_[event].leader == event) leaders_[{event, task, cpu}] = fd->get();
    events_.push_back({event, cpu, task, std::move(*fd), *id, 0, *id, false});
  }
  return Done{};
}

// The leader of a group was opened before its members, for the same thread on the same CPU; -1: there is
// none.
Result<int> KernelEvents::leader_of(std::size_t event, int task, int cpu) const {
  const auto leader = planned_[event].leader;
  if (!leader || *leader == event) return -1;
  const auto open = leaders_.find({*leader, task, cpu});
  if (open == leaders_.end()) return Error{"the thread has ended", ESRCH};
  return open->second;
}

// Each CPU has a ring for samples and one for the sideband, owned by the first event that needs it. With
// --per-thread the events of a thread share a ring.
Result<> KernelEvents::map_rings(const Host& host) {
  std::map<std::tuple<bool, int, int>, const OpenEvent*> owners;
  for (OpenEvent& event : events_) {
    const bool is_sideband = planned_[event.event].is_sideband;
    const auto [owner, is_new] =
        owners.try_emplace({is_sideband, event.cpu, event.cpu < 0 ? event.task : 0}, &event);
    if (!is_new) {
      if (auto done = share_ring(event.fd, owner->second->fd); !done) return done;
      event.ring = owner->second->ring;
      continue;
    }
    auto done = map_ring(event, planned_[event.event], is_sideband ? sideband_pages_ : ring_pages_, host);
    if (!done) return done;
  }
  return Done{};
}

// Maps a new ring for the event.
Result<> KernelEvents::map_ring(OpenEvent& event, const PlannedEvent& planned, std::size_t pages,
                                const Host& host) {
  const bool is_backward = planned.attr.has(abi::kWriteBackward);
  auto ring =
      PerfRing::map(event.fd, pages, host.page_size, is_backward ? RingKind::Backward : RingKind::Forward);
  if (!ring) return std::move(ring.error());
  ring->set_trailer(format::sample_id_size(planned.attr));
  event.ring = rings_.size();
  rings_.push_back(std::move(*ring));
  holds_sideband_.push_back(planned.is_sideband);
  return Done{};
}

std::vector<std::uint64_t> KernelEvents::system_wide_ids() const {
  std::vector<std::uint64_t> ids;
  for (const OpenEvent& event : events_) {
    if (planned_[event.event].system_wide) ids.push_back(event.id);
  }
  return ids;
}

Result<> KernelEvents::enable_sideband() const {
  for (const OpenEvent& event : events_) {
    if (!planned_[event.event].is_sideband) continue;
    if (auto done = enable_event(event.fd); !done) return done;
  }
  return Done{};
}

Result<> KernelEvents::enable_samples() const {
  std::vector<std::size_t> switched;
  Result<> done = Done{};
  for (const OpenEvent& event : events_) {
    const PlannedEvent& planned = planned_[event.event];
    if (planned.is_sideband || planned.attr.has(abi::kEnableOnExec)) continue;
    done = enable_event(event.fd);
    if (!done) break;
    note_switch(event.event, true, switched);
  }
  call_on_switch(switched, Sampling::On);
  return done;
}

// Notes the time when the first of an event's descriptors is switched.
void KernelEvents::note_switch(std::size_t event, bool on, std::vector<std::size_t>& switched) const {
  std::vector<Switched>& all = (*switched_)[event];
  if (!all.empty() && all.back().on == on) return;
  all.push_back({monotonic_now(), on});
  switched.push_back(event);
}

void KernelEvents::call_on_switch(std::span<const std::size_t> switched, Sampling now) const {
  if (on_switch_ && !switched.empty()) on_switch_(switched, now);
}

bool KernelEvents::was_on(std::size_t event, std::uint64_t time) const {
  const std::vector<Switched>& all = (*switched_)[event];
  const auto next = std::ranges::upper_bound(all, time, {}, &Switched::time);
  return next != all.begin() && std::prev(next)->on;
}

// Events that cannot be disabled belong to a task that ended.
void KernelEvents::disable() const {
  std::vector<std::size_t> switched;
  each_open([&](const OpenEvent& event, const PlannedEvent&) {
    (void)disable_event(event.fd);
    note_switch(event.event, false, switched);
  });
  call_on_switch(switched, Sampling::Off);
}

Result<> KernelEvents::set_samples(Sampling sampling, const std::string& name) const {
  bool any = name.empty();
  std::vector<std::size_t> switched;
  each_open([&](const OpenEvent& event, const PlannedEvent& planned) {
    if (planned.is_sideband || (!name.empty() && planned.name != name)) return;
    any = true;
    (void)(sampling == Sampling::On ? enable_event(event.fd) : disable_event(event.fd));
    note_switch(event.event, sampling == Sampling::On, switched);
  });
  call_on_switch(switched, sampling);
  if (any) return Done{};
  std::string names;
  for (const PlannedEvent& planned : planned_) {
    if (!planned.is_sideband) names += (names.empty() ? "" : ", ") + planned.name;
  }
  return Error{"there is no event '" + name + "' here; there are: " + names};
}

// Events that cannot be paused belong to a task that ended, and write no more.
void KernelEvents::pause_backward_rings(bool pause) const {
  each_open([pause](const OpenEvent& event, const PlannedEvent& planned) {
    if (planned.attr.has(abi::kWriteBackward)) (void)pause_event(event.fd, pause);
  });
}

// Calls `what` for the events as opened at the start, and then for reopened ones.
void KernelEvents::each_open(const std::function<void(const OpenEvent&, const PlannedEvent&)>& what) const {
  for (const OpenEvent& event : events_) what(event, planned_[event.event]);
  reopened_->each([&](const OpenEvent& event) { what(event, planned_[event.event]); });
}

Losses KernelEvents::loss_of(const OpenEvent& event) const {
  const std::uint64_t lost = lost_by_event(event.fd, planned_[event.event].attr, event.own_id);
  return {.event = event.event, .id = event.id, .lost = lost, .cpu = event.is_of_new_cpu ? event.cpu : -1};
}

std::vector<Losses> KernelEvents::all_losses(bool of_sideband) const {
  std::vector<Losses> found;
  const auto add = [&](const Losses& loss) {
    if (planned_[loss.event].is_sideband == of_sideband) add_loss(found, loss);
  };
  for (const OpenEvent& event : events_) add(loss_of(event));
  for (const Losses& loss : reopened_->losses([this](const OpenEvent& event) { return loss_of(event); }))
    add(loss);
  return found;
}

std::uint64_t KernelEvents::sideband_losses() const {
  std::uint64_t lost = 0;
  for (const Losses& loss : all_losses(true)) lost += loss.lost;
  return lost;
}

bool KernelEvents::counts_losses() const {
  return std::ranges::all_of(planned_, [](const PlannedEvent& event) {
    return event.is_sideband || (event.attr.read_format & abi::kReadLost) != 0;
  });
}

namespace {

// Whether the kernel runs the program that walks stacks for each sample of it.
bool is_walked_at_samples(const PlannedEvent& event) {
  return event.unwound_frames != 0 && event.attr.type != abi::kTracepoint && event.probe_target.empty() &&
         !event.attr.is_bpf_output();
}

// The time between two samples of a clock, ns; 0: it is no clock, or some samples are left out.
std::uint64_t period_of_clock(const PlannedEvent& event) {
  constexpr std::uint64_t kSecond = 1'000'000'000, kLeast = 10'000;  // ns; the kernel's least period
  const format::EventAttr& attr = event.attr;
  const bool is_clock =
      attr.type == abi::kSoftware && (attr.config == abi::kCpuClock || attr.config == abi::kTaskClock);
  const std::uint64_t partial = abi::kExcludeUser | abi::kExcludeKernel | abi::kExcludeIdle;
  if (!is_clock || (attr.flags & partial) != 0 || !event.condition.empty() || attr.sample_period == 0)
    return 0;
  return std::max(kLeast, attr.has(abi::kFreq) ? kSecond / attr.sample_period : attr.sample_period);
}

}  // namespace

std::optional<Losses> KernelEvents::due_samples() const {
  std::optional<Losses> due;
  bool is_known = true;
  each_open([&](const OpenEvent& event, const PlannedEvent& planned) {
    if (!is_walked_at_samples(planned)) return;
    const std::uint64_t period = period_of_clock(planned);
    // The clock of a whole CPU counts idle time too, in which the kernel takes few samples.
    const bool is_of_cpu = event.task < 0 && planned.cgroup < 0;
    is_known &= period != 0 && !is_of_cpu;
    if (!is_known) return;
    if (!due) due = {.event = event.event, .id = event.id, .reason = LossReason::InBpf};
    due->lost += read_event(event.fd, planned.attr, event.own_id).value / period;
  });
  return is_known ? due : std::nullopt;
}

format::EventSet KernelEvents::event_set() const {
  format::EventSet set;
  for (const PlannedEvent& planned : planned_) set.add_event({planned.attr, planned.name, {}});
  for (const OpenEvent& event : events_) set.add_id(event.event, event.id);
  return set;
}

// Events of CPUs that came back online.

void KernelEvents::ReopenedEvents::each(const std::function<void(const OpenEvent&)>& what) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [cpu, events] : by_cpu_)
    for (const OpenEvent& event : events) what(event);
}

std::span<const OpenEvent> KernelEvents::ReopenedEvents::replace_events(int cpu,
                                                                        std::vector<OpenEvent> events,
                                                                        std::vector<Losses> before) {
  const std::lock_guard lock(mutex_);
  for (const Losses& loss : before) add_loss(before_, loss);
  return by_cpu_[cpu] = std::move(events);
}

void KernelEvents::ReopenedEvents::add_note(std::string cpu, std::string what) {
  const std::lock_guard lock(mutex_);
  constexpr std::size_t kMost = 256;  // a limit for a CPU that goes offline again and again
  if (notes_.size() < kMost) notes_.emplace_back(std::move(cpu), std::move(what));
}

format::StringPairs KernelEvents::ReopenedEvents::notes() const {
  const std::lock_guard lock(mutex_);
  return notes_;
}

std::vector<Losses> KernelEvents::ReopenedEvents::losses(
    const std::function<Losses(const OpenEvent&)>& of) const {
  const std::lock_guard lock(mutex_);
  std::vector<Losses> all = before_;
  for (const auto& [cpu, events] : by_cpu_)
    for (const OpenEvent& event : events) all.push_back(of(event));
  return all;
}

void KernelEvents::note_cpu(int cpu, const std::string& what) {
  reopened_->add_note("CPU " + std::to_string(cpu), what);
}
format::StringPairs KernelEvents::noted_cpus() const { return reopened_->notes(); }

// The new event has the capture's id of the CPU's earlier event, or of an event of another CPU.
Result<OpenEvent> KernelEvents::reopen_one(std::size_t event, int cpu, std::span<const OpenEvent> leaders,
                                           const Host& host) const {
  const PlannedEvent& planned = planned_[event];
  const auto is_model = [&](const OpenEvent& open) { return open.event == event && open.task < 0; };
  auto model = std::ranges::find_if(events_, [&](const OpenEvent& o) { return is_model(o) && o.cpu == cpu; });
  if (model == events_.end()) model = std::ranges::find_if(events_, is_model);
  if (model == events_.end()) return OpenEvent{};  // a per-task event
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

// Uses the earlier ring of this CPU, or makes one, which is kept.
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
  if (rings_.size() == rings_.capacity()) return Error{"it was not present at the start of the recording"};
  format::Fd owner(fcntl(event.fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!owner) return system_error("a descriptor of its ring", errno);
  auto done = map_ring(event, planned_[event.event], is_sideband ? sideband_pages_ : ring_pages_, host);
  if (!done) return done;
  later_rings_.emplace(key, LaterRing{std::move(owner), event.ring});
  return Done{};
}

// A refused event is left out, for instance a probe in a deleted library.
Result<KernelEvents::Reopened> KernelEvents::reopen_cpu(int cpu, const Host& host) {
  std::vector<OpenEvent> opened;
  std::string left_out;
  const auto leave_out = [&](std::size_t event, const std::string& why) {
    left_out += (left_out.empty() ? "" : "; ") + fmt::format("{}: {}", planned_[event].name, why);
  };
  bool any_of_tasks = false;
  for (std::size_t event = 0; event < planned_.size(); ++event) {
    // Counts of a group are identified by the kernel's ids, which the capture does not have.
    if (planned_[event].attr.samples(abi::kSampleRead)) {
      leave_out(event, "samples with counts of a group (:S) cannot be recorded again");
      continue;
    }
    auto open = reopen_one(event, cpu, opened, host);
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
  return Reopened{reopened_->replace_events(cpu, std::move(opened), losses_of_cpu(cpu)), std::move(left_out)};
}

void KernelEvents::close_cpu(int cpu) { (void)reopened_->replace_events(cpu, {}, losses_of_cpu(cpu)); }

// Losses of the reopened events of a CPU.
std::vector<Losses> KernelEvents::losses_of_cpu(int cpu) const {
  std::vector<Losses> losses;
  reopened_->each([&](const OpenEvent& event) {
    if (event.cpu == cpu) losses.push_back(loss_of(event));
  });
  return losses;
}

Result<> KernelEvents::enable_cpu(std::span<const OpenEvent> events) const {
  for (const OpenEvent& event : events) {
    if (!planned_[event.event].is_sideband && !is_on(event.event)) continue;
    if (auto done = enable_event(event.fd); !done) return done;
  }
  return Done{};
}

}  // namespace tacho::record
