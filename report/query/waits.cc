#include "report/query/waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/message_text.h"
#include "format/records/perf_abi.h"
#include "report/query/field_choice.h"
#include "symbolize/address_space.h"

namespace tacho::report {
namespace {

// The maximum number of threads; a capture with more is not a real one.
constexpr std::size_t kMostThreads = std::size_t{1} << 20;

// Bits of prev_state in which a thread sleeps. Without them it was preempted.
constexpr std::int64_t kStates = 0xff, kDead = 0x30, kIdle = 0x80;

// Entry functions of interrupts: the frames below them were interrupted, and did not wake the thread.
constexpr std::string_view kInterruptEntries[] = {
    "asm_sysvec_", "asm_common_interrupt", "asm_exc_nmi", "el1h_64_irq", "el0t_64_irq", "el1_irq", "el0_irq",
};

// The kernel's functions that run timers.
constexpr std::string_view kTimerFunctions[] = {
    "hrtimer_interrupt", "__hrtimer_run_queues", "hrtimer_run_softirq", "call_timer_fn",
    "expire_timers",     "__run_timers",         "run_timer_softirq",
};

}  // namespace

Filter take_who(Filter& filter) {
  Filter who;
  who.pids = std::exchange(filter.pids, {});
  who.tids = std::exchange(filter.tids, {});
  who.cpus = std::exchange(filter.cpus, {});
  who.comms = std::exchange(filter.comms, {});
  return who;
}

Waits::Waits(Session& session, const WaitOptions& options, Keep keep)
    : session_(&session),
      options_(options),
      keep_(std::move(keep)),
      schemas_(session.events(), session.features()) {}

Waits::EventFacts Waits::facts_of(std::size_t event, const std::string& name) {
  EventFacts facts;
  const PayloadSchema* const schema = schemas_.schema_of(event);
  if (schema == nullptr) return facts;
  if (name == "sched:sched_switch") {
    facts.what = What::Switch;
    facts.state = field_named(*schema, "prev_state");
    facts.leaver = field_named(*schema, "prev_pid");
    facts.thread = field_named(*schema, "next_pid");
    if (facts.state == nullptr || facts.thread == nullptr) facts = {};
    return facts;
  }
  if (const PayloadField* const wakes = field_with_role(*schema, "wakes"); wakes != nullptr) {
    facts.what = What::Wake;
    facts.thread = wakes;
    facts.waker = field_with_role(*schema, "waker");
    return facts;
  }
  if (name == "sched:sched_waking" || name == "sched:sched_wakeup") {
    facts.what = What::Wake;
    facts.thread = field_named(*schema, "pid");
    return facts.thread != nullptr ? facts : EventFacts();
  }
  // Recorders make a payload's stack the sample's own.
  const bool is_wait =
      field_with_role(*schema, "stack") != nullptr || field_with_role(*schema, "queued") != nullptr;
  const PayloadField* const time = value_field(*schema);
  if (is_wait && time != nullptr && time->unit == "ns") {
    facts.what = What::Wait;
    facts.time = time;
    facts.queued = field_with_role(*schema, "queued");
    facts.weight = field_with_role(*schema, "weight");
    if (facts.weight != nullptr && facts.weight->unit != "ns") facts.weight = nullptr;
    facts.skipped = field_named(*schema, "skipped_ns");
  }
  const PayloadField* const why = field_with_role(*schema, "why_queued");
  if (options_.takes_all && why != nullptr && time != nullptr && time->unit == "ns") {
    facts.what = What::Queue;
    facts.time = time;
    facts.why = why;
  }
  return facts;
}

Result<> Waits::find_events() {
  bool has_waits = false, has_wakers = false, has_waking = false;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < session_->events().size(); ++i) {
    names.push_back(session_->events()[i].name);
    events_.push_back(facts_of(i, names.back()));
    has_switches_ = has_switches_ || events_.back().what == What::Switch;
    has_queues_ = has_queues_ || events_.back().what == What::Queue;
    has_waits =
        has_waits || events_.back().what == What::Switch || events_.back().what == What::Wait || has_queues_;
    has_wakers = has_wakers || events_.back().what == What::Wake;
    has_waking = has_waking || names.back() == "sched:sched_waking";
  }
  for (std::size_t i = 0; i < events_.size(); ++i) {
    // sched_waking is recorded where the waker runs, sched_wakeup at the thread's new CPU, perhaps in an
    // interrupt there.
    if (has_waking && names[i] == "sched:sched_wakeup") events_[i] = {};
    // Each wait once.
    if (has_switches_ && (events_[i].what == What::Wait || events_[i].what == What::Queue)) events_[i] = {};
  }
  if (!has_waits && options_.takes_all) find_switch_records();
  if (!has_waits && !has_switch_records_)
    return use_error(
        "--off-cpu: no event of the capture is a wait; record with -e offcpu, or with -g -e "
        "sched:sched_switch");
  if (options_.wakers > 0 && !has_wakers)
    return use_error(
        "--wakers: no event of the capture has wakers; record with -e offcpu,waking, or with -g -e "
        "sched:sched_switch,sched:sched_waking");
  return Done{};
}

// What a user without rights for tracepoints and BPF can record.
void Waits::find_switch_records() {
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const format::EventAttr& attr = session_->events()[i].attr;
    has_switch_records_ = has_switch_records_ || attr.has(format::abi::kContextSwitch);
    if (attr.type == format::abi::kSoftware && attr.config == format::abi::kContextSwitches)
      events_[i].what = What::Stack;
  }
  has_switches_ = has_switch_records_;
}

std::optional<Wait> Waits::take_record(const NonSampleRecord& event) {
  const auto* const change = has_switch_records_ ? std::get_if<format::SwitchRecord>(event.record) : nullptr;
  if (change == nullptr || !symbolize::identifies_task(event.id.tid)) return std::nullopt;
  if (!change->is_out) return arrive(event.id.tid, event.id.time);
  leave(*change, event.id.tid, event);
  return std::nullopt;
}

void Waits::leave(const format::SwitchRecord& change, std::uint32_t thread, const NonSampleRecord& event) {
  Wait wait;
  // The sample of this switch, not of one before whose record was lost.
  constexpr std::uint64_t kOneSwitch = 1'000'000;  // ns
  if (const auto sampled = leaving_.find(thread); sampled != leaving_.end()) {
    if (event.id.time - sampled->second.end < kOneSwitch) wait = sampled->second;
    leaving_.erase(sampled);
  }
  wait.thread = event.thread;
  wait.comm = event.comm;
  wait.pid = event.id.pid;
  wait.tid = thread;
  if (asleep_.size() >= kMostThreads) return;
  asleep_[thread] = {event.id.time, change.is_preempt ? event.id.time : 0, wait};
  seen_.insert(thread);
}

std::optional<Int128> Waits::number(const PayloadField* field, const ResolvedSample& sample) const {
  return field == nullptr ? std::nullopt : read_number(*field, sample.fields->raw, sample.order);
}

std::optional<Wait> Waits::take_sample(const ResolvedSample& sample) {
  if (sample.event_index >= events_.size()) return std::nullopt;  // a pipe brought it after find_events()
  const EventFacts& facts = events_[sample.event_index];
  if (facts.what == What::Nothing) return std::nullopt;
  const auto thread = number(facts.thread, sample);
  switch (facts.what) {
    case What::Switch:
      leave(sample, facts);
      return thread ? arrive(static_cast<std::uint32_t>(*thread), sample.fields->time) : std::nullopt;
    case What::Wake:
      if (!thread || !symbolize::identifies_task(static_cast<std::uint32_t>(*thread))) return std::nullopt;
      if (options_.takes_all) note_wake(static_cast<std::uint32_t>(*thread), sample.fields->time);
      if (options_.wakers > 0) wake(sample, static_cast<std::uint32_t>(*thread));
      return std::nullopt;
    case What::Wait:
      return take_wait(sample, facts);
    case What::Queue:
      return take_queue(sample, facts);
    case What::Stack:
      if (leaving_.size() >= kMostThreads && !leaving_.contains(sample.tid())) return std::nullopt;
      leaving_[sample.tid()] = begun_by(sample);
      leaving_[sample.tid()].end = sample.fields->time;
      return std::nullopt;
    case What::Nothing:
      break;
  }
  return std::nullopt;
}

bool Waits::is_wanted(const ResolvedSample& sample) const {
  const Filter& who = options_.who;
  return who.accepts_start(*sample.fields) && who.accepts_comm(sample.comm) &&
         (who.condition == nullptr || who.condition->holds(sample, &session_->resolver()));
}

Wait Waits::begun_by(const ResolvedSample& sample) const {
  return {.event = sample.event_index,
          .thread = sample.thread,
          .comm = sample.comm,
          .pid = sample.pid(),
          .tid = sample.tid(),
          .location = sample.location_id,
          .stack = sample.stack,
          .kept = keep_ ? keep_(sample) : 0};
}

std::optional<Wait> Waits::take_wait(const ResolvedSample& sample, const EventFacts& facts) {
  const auto duration = number(facts.time, sample);
  if (!duration || *duration <= 0) return std::nullopt;
  if (!is_wanted(sample)) {
    // Forget the waker, which is not the one of the next wait.
    if (const auto old = woken_.find(sample.tid()); old != woken_.end()) old->second.is_new = false;
    return std::nullopt;
  }
  if (sample.stack == nullptr && !options_.takes_all) {
    ++without_stack_;
    return std::nullopt;
  }
  Wait wait = begun_by(sample);
  wait.weight = static_cast<std::uint64_t>(std::max(number(facts.weight, sample).value_or(0), *duration));
  wait.skipped = static_cast<std::uint64_t>(std::max(number(facts.skipped, sample).value_or(0), Int128{0}));
  wait.queued =
      static_cast<std::uint64_t>(std::clamp(number(facts.queued, sample).value_or(0), Int128{0}, *duration));
  return ended(wait, sample.tid(), static_cast<std::uint64_t>(*duration), sample.fields->time);
}

std::optional<Wait> Waits::take_queue(const ResolvedSample& sample, const EventFacts& facts) {
  const auto duration = number(facts.time, sample);
  if (!duration || *duration <= 0 || !is_wanted(sample)) return std::nullopt;
  const auto why = read_field(*facts.why, sample.fields->raw, sample.order);
  Wait wait = begun_by(sample);
  wait.duration = wait.weight = wait.queued = static_cast<std::uint64_t>(*duration);
  wait.end = sample.fields->time;
  wait.is_queue = true;
  wait.was_woken = why && name_of(*facts.why, *why) == "woken";
  return wait;
}

void Waits::learn_tids(const ResolvedSample& sample, std::uint32_t kernel_tid) {
  const std::uint32_t own = sample.tid();
  if (own == ~0U) return;  // it exits
  is_in_namespace_ = is_in_namespace_ || own != kernel_tid;
  if (!is_in_namespace_ || !symbolize::identifies_task(own) || own_tids_.size() >= kMostThreads) return;
  kernel_tids_[own] = kernel_tid;
  own_tids_[kernel_tid] = own;
}

std::uint32_t Waits::kernel_tid_of(const ResolvedSample& sample) const {
  const std::uint32_t own = sample.tid();
  if (!symbolize::identifies_task(own)) return 0;
  if (!is_in_namespace_) return own;
  const auto known = kernel_tids_.find(own);
  return known == kernel_tids_.end() ? 0 : known->second;
}

void Waits::leave(const ResolvedSample& sample, const EventFacts& facts) {
  const auto thread = static_cast<std::uint32_t>(number(facts.leaver, sample).value_or(sample.tid()));
  learn_tids(sample, thread);
  const auto state = number(facts.state, sample);
  if (const auto old = woken_.find(thread); old != woken_.end()) old->second.is_new = false;
  if (const auto slept = asleep_.find(thread); slept != asleep_.end()) {
    ++without_end_;
    if (options_.takes_all && sample.fields->time > slept->second.since) {
      Wait& lost = lost_.emplace_back(slept->second.wait);
      lost.end = sample.fields->time;
      lost.duration = lost.end - slept->second.since;
      lost.has_end = false;
    }
    asleep_.erase(slept);
  }
  is_of_all_ = is_of_all_ || thread == 0;
  const bool is_dead = state && (*state & kDead) != 0;
  const bool sleeps = state && (*state & kStates) != 0 && !is_dead && (*state & kIdle) == 0;
  if (thread == 0 || is_dead || !(sleeps || options_.takes_all) || !is_wanted(sample)) {
    if (is_dead) seen_.erase(thread);
    return;
  }
  if (sample.stack == nullptr && !options_.takes_all) {
    ++without_stack_;
    return;
  }
  if (asleep_.size() >= kMostThreads) return;
  const bool could_run = state && (*state & kStates) == 0;
  asleep_[thread] = {sample.fields->time, could_run ? sample.fields->time : 0, begun_by(sample)};
  if (sample.tid() == 0) asleep_[thread].wait.comm = kOutsideName;  // no idle task: it has a number
  if (options_.takes_all) seen_.insert(thread);
}

// A thread's state is known from its first switch to a CPU on.
std::optional<Wait> Waits::first_seen(std::uint32_t thread, std::uint64_t time) {
  if (!options_.takes_all || thread == 0 || seen_.size() >= kMostThreads || !seen_.insert(thread).second)
    return std::nullopt;
  Wait wait;
  wait.tid = thread;
  if (is_in_namespace_) {
    const auto own = own_tids_.find(thread);
    if (own == own_tids_.end()) return std::nullopt;
    wait.tid = own->second;
  }
  wait.end = time;
  wait.has_begin = false;
  const auto woken = woken_unseen_.find(thread);
  if (woken == woken_unseen_.end()) return wait;
  if (woken->second < time) wait.queued = time - woken->second;
  woken_unseen_.erase(woken);
  return wait;
}

void Waits::note_wake(std::uint32_t thread, std::uint64_t time) {
  if (const auto slept = asleep_.find(thread); slept != asleep_.end()) {
    if (slept->second.woken_at == 0) slept->second.woken_at = time;
  } else if (has_switches_ && !seen_.contains(thread) && woken_unseen_.size() < kMostThreads) {
    woken_unseen_.try_emplace(thread, time);
  }
}

std::vector<Wait> Waits::unfinished(std::uint64_t time) {
  std::vector<Wait> waits;
  for (const auto& [thread, asleep] : asleep_) {
    if (time <= asleep.since) continue;
    Wait& wait = waits.emplace_back(asleep.wait);
    wait.duration = wait.weight = time - asleep.since;
    wait.end = time;
    if (asleep.woken_at != 0 && asleep.woken_at < time) wait.queued = time - asleep.woken_at;
  }
  asleep_.clear();
  std::ranges::sort(waits, {}, &Wait::tid);
  return waits;
}

std::optional<Wait> Waits::arrive(std::uint32_t thread, std::uint64_t time) {
  const auto slept = asleep_.find(thread);
  if (slept == asleep_.end()) return first_seen(thread, time);
  Asleep asleep = slept->second;
  asleep_.erase(slept);
  if (time <= asleep.since) return std::nullopt;
  if (asleep.woken_at != 0 && asleep.woken_at < time) asleep.wait.queued = time - asleep.woken_at;
  return ended(asleep.wait, thread, time - asleep.since, time);
}

// Of several wake-ups during one wait the first counts: later ones found the thread awake.
void Waits::wake(const ResolvedSample& sample, std::uint32_t thread) {
  if (woken_.size() >= kMostThreads && !woken_.contains(thread)) return;
  const auto old = woken_.find(thread);
  if (has_switches_ && old != woken_.end() && old->second.is_new) return;
  Woken woken;
  woken.is_new = true;
  woken.by.push_back(waker_of(sample));
  // No thread woke an interrupt, so the chain of wakers ends here.
  const auto before = woken_.find(has_switches_ ? kernel_tid_of(sample) : sample.tid());
  if (!woken.by.front().is_interrupt && before != woken_.end()) {
    const auto& by = before->second.by;
    const auto more = std::min<std::size_t>(by.size(), options_.wakers - 1);
    woken.by.insert(woken.by.end(), by.begin(), by.begin() + static_cast<std::ptrdiff_t>(more));
  }
  woken_[thread] = std::move(woken);
}

Wait Waits::ended(Wait wait, std::uint32_t thread, std::uint64_t duration, std::uint64_t end) {
  ++waits_;
  wait.duration = duration;
  wait.weight = std::max(wait.weight, duration);
  wait.end = end;
  const auto woken = woken_.find(thread);
  if (woken == woken_.end() || !woken->second.is_new) return wait;
  ++with_waker_;
  woken->second.is_new = false;
  if (!keeps_wakers_) {
    ++shortened_;
    return wait;
  }
  ended_by_ = woken->second.by;
  wait.wakers = ended_by_;
  return wait;
}

std::string_view Waits::waker_name(const ResolvedSample& sample, const PayloadField* field) {
  const auto value = field != nullptr ? read_field(*field, sample.fields->raw, sample.order) : std::nullopt;
  if (!value || !std::holds_alternative<std::string_view>(*value)) return sample.comm;
  const std::string_view name = std::get<std::string_view>(*value);
  if (names_.size() >= kMostThreads && !names_.contains(std::string(name))) return sample.comm;
  return *names_.emplace(name).first;
}

Waker Waits::waker_of(const ResolvedSample& sample) {
  Waker waker{.stack = sample.stack, .comm = waker_name(sample, events_[sample.event_index].waker)};
  waker.is_interrupt = waker.comm == kTimerMark || waker.comm == kInterruptMark;  // as the recorder saw it
  bool is_timer = waker.comm == kTimerMark;
  if (sample.stack != nullptr) {
    for (const LocationId location : sample.stack->frames) {
      ++waker.frames;
      const Part part = part_of(location);
      is_timer |= part == Part::Timer;
      if (part != Part::Entry) continue;
      waker.is_interrupt = true;
      break;
    }
  }
  // Timers that are late run in threads of the kernel.
  if (waker.is_interrupt || is_timer) {
    waker.is_interrupt = true;
    waker.comm = is_timer ? kTimerMark : kInterruptMark;
    return waker;
  }
  waker.pid = sample.pid();
  waker.tid = sample.tid();
  if (is_in_namespace_ && waker.tid == 0) waker.comm = kOutsideName;
  return waker;
}

Waits::Part Waits::part_of(LocationId location) {
  Part& part = parts_[location];
  if (part != Part::Unknown) return part;
  part = Part::Code;
  for (const symbolize::Frame& frame : session_->resolver().frames(session_->resolver().location(location))) {
    const auto begins = [&frame](std::string_view name) { return frame.function.starts_with(name); };
    if (std::ranges::any_of(kInterruptEntries, begins)) part = Part::Entry;
    if (std::ranges::count(kTimerFunctions, std::string_view(frame.function)) != 0) part = Part::Timer;
  }
  return part;
}

std::vector<std::string> Waits::notes() const {
  std::vector<std::string> notes;
  if (waits_ == 0) notes.emplace_back("no wait has an end in the capture");
  if (without_end_ > 0)
    notes.push_back(fmt::format(
        "left out: waits without an end in the capture: {}; the end of a wait is recorded at the switch from "
        "the thread that ran before{}",
        without_end_,
        is_of_all_ ? ", and some switches are not in the capture" : ", so record with -a to have them"));
  if (!asleep_.empty())
    notes.push_back(fmt::format("left out: waits that went on when the capture ended: {}", asleep_.size()));
  if (without_stack_ > 0)
    notes.push_back(fmt::format("{} without a stack left out; record with -g to have them",
                                cli::counted(without_stack_, "wait")));
  if (options_.wakers > 0 && waits_ > 0)
    notes.push_back(fmt::format("{} of {} waits have a waker", with_waker_, waits_));
  if (shortened_ > 0)
    notes.push_back(
        fmt::format("the last {} of them are shown without it, as the chains of those before take {} MB",
                    shortened_, kMostChainBytes >> 20));
  return notes;
}

}  // namespace tacho::report
