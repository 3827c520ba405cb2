#include "report/profile/wall_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <variant>

#include "format/records/perf_abi.h"
#include "symbolize/address_space.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

constexpr std::uint32_t kNotShown = ~std::uint32_t{0}, kNoRow = ~std::uint32_t{0};
constexpr std::size_t kMostThreads = std::size_t{1} << 20;  // more cannot be real
constexpr std::uint32_t kMostWaits = 1U << 20;              // that one stands for

constexpr std::pair<WallState, std::string_view> kNames[] = {
    {WallState::OnCpu, "[on-CPU]"},
    {WallState::Runnable, "[runnable]"},
    {WallState::Io, "[blocked: I/O]"},
    {WallState::Lock, "[blocked: lock]"},
    {WallState::Sleep, "[blocked: sleep]"},
    {WallState::Poll, "[blocked: poll]"},
    {WallState::Network, "[blocked: network]"},
    {WallState::Pipe, "[blocked: pipe]"},
    {WallState::Child, "[blocked: child process]"},
    {WallState::Idle, "[blocked: no work]"},
    {WallState::Blocked, "[blocked]"},
    {WallState::NoReason, "[off-CPU: no reason recorded]"},
    {WallState::Before, "[blocked: since before the recording]"},
    {WallState::Unknown, "[not recorded]"},
};

// What a thread waits for in kernel functions whose names begin so. The innermost function of a call chain
// decides.
struct WaitRow {
  WallState state;
  std::initializer_list<std::string_view> prefixes;
};
const WaitRow kWaitsIn[] = {
    {WallState::Io,
     {"io_schedule", "folio_wait_", "wait_on_buffer", "__wait_on_buffer", "submit_bio_wait", "blk_",
      "jbd2_log_wait"}},
    {WallState::Lock,
     {"futex_", "__futex_", "do_futex", "mutex_lock", "__mutex_lock", "rwsem_", "down_read", "down_write",
      "__down", "rt_mutex_"}},
    {WallState::Sleep, {"do_nanosleep", "hrtimer_nanosleep", "msleep", "usleep_range"}},
    {WallState::Poll,
     {"do_wait_intr", "timerfd_read", "eventfd_read", "inotify_read", "signalfd_", "wq_sleep", "do_sys_poll",
      "do_poll", "do_select", "ep_poll", "do_epoll_wait", "io_cqring_wait"}},
    {WallState::Network,
     {"sk_wait_data", "sk_stream_wait", "tcp_recvmsg", "inet_csk_accept", "inet_wait_for_connect",
      "unix_stream_", "__skb_wait_for_more"}},
    {WallState::Pipe, {"pipe_read", "pipe_write", "pipe_wait", "anon_pipe_"}},
    {WallState::Child, {"do_wait", "kernel_wait4"}},
    {WallState::Idle, {"worker_thread", "rescuer_thread", "smpboot_thread_fn", "rcu_gp_kthread", "kthreadd"}},
};

bool is_clock(const format::EventAttr& attr) {
  return attr.type == abi::kSoftware && attr.config <= abi::kTaskClock;
}
bool is_counter(const format::EventAttr& attr) {
  return attr.type == abi::kHardware || attr.type == abi::kHwCache || attr.type == abi::kRaw;
}

WaitOptions options_of(const WaitOptions& given, unsigned wakers) {
  WaitOptions options;
  options.wakers = wakers;
  options.takes_all = true;
  options.is_asked_for = given.is_asked_for;
  return options;
}

}  // namespace

std::string_view name_of(WallState state) {
  return std::ranges::find(kNames, state, &std::pair<WallState, std::string_view>::first)->second;
}

WallTimes::WallTimes(Session& session, const WaitOptions& waits, WallObserver observer)
    : session_(&session),
      who_(waits.who),
      ranges_(std::exchange(session.filter().times, {})),
      options_(waits),
      observer_(std::move(observer)),
      waits_(session, options_of(waits, 0)) {}

Result<> WallTimes::find_events() {
  // With wakers if the capture has them, as many as the options request.
  for (const unsigned wakers : {std::max(options_.wakers, 1U), 0U}) {
    waits_ = Waits(*session_, options_of(options_, wakers), observer_.keep);
    const auto found = waits_.find_events();
    has_waits_ = static_cast<bool>(found);
    has_wakers_ = has_waits_ && wakers > 0;
    if (has_waits_ || options_.wakers > 0) break;
  }
  if (!has_waits_ && options_.wakers > 0)
    return use_error(
        "--wakers: no event of the capture has wakers; record with -e cpu-clock,offcpu,waking,runqlat");
  const format::EventSet& events = session_->events();
  is_clock_ = std::ranges::any_of(events, [](const format::Event& event) { return is_clock(event.attr); });
  for (const format::Event& event : events) {
    samples_cpu_.push_back(is_clock_ ? is_clock(event.attr) : is_counter(event.attr));
    has_samples_ = has_samples_ || samples_cpu_.back();
  }
  if (!has_waits_ && !is_clock_)
    return use_error(
        "--wall: no event of the capture says what threads do in all their time; record with -g -e "
        "cpu-clock,offcpu,waking,runqlat");
  return Done{};
}

WallTimes::Track& WallTimes::track_of(std::uint32_t tid) {
  if (tracks_.empty())
    tracks_.emplace_back();  // the first one is for threads beyond the limit, and is not shown
  if (const auto known = by_tid_.find(tid); known != by_tid_.end()) return tracks_[known->second];
  if (tracks_.size() >= kMostThreads) return tracks_[0];
  by_tid_[tid] = static_cast<std::uint32_t>(tracks_.size());
  Track& track = tracks_.emplace_back();
  track.number = by_tid_[tid];
  track.tid = track.pid = tid;
  if (const auto thread = known_threads_.find(tid); thread != known_threads_.end()) {
    track.thread = thread->second;
    track.pid = thread->second->pid;
  }
  return track;
}

void WallTimes::take(const ResolvedSample& sample) {
  const std::uint64_t time = sample.fields->time;
  begin_ = std::min(begin_, time);
  end_ = std::max(end_, time);
  const auto tid = sample.tid();
  const bool is_thread = symbolize::identifies_task(tid);  // 0: an idle CPU, or several threads
  if (is_thread && sample.thread != nullptr) {
    known_threads_[tid] = sample.thread;
    Track& track = track_of(tid);
    track.thread = sample.thread;
    track.pid = sample.thread->pid;
    if (track.end != 0) track.end = std::max(track.end, time);
  }
  if (has_waits_) {
    auto wait = waits_.take_sample(sample);
    for (const Wait& lost : waits_.take_without_end()) add_lost(lost);
    if (wait && sample.event().attr.samples(abi::kSampleCpu)) wait->cpu = sample.fields->cpu;
    if (wait && symbolize::identifies_task(wait->tid)) add(*wait);
  }
  const bool is_of_cpu = sample.event_index < samples_cpu_.size() && samples_cpu_[sample.event_index];
  if (!is_of_cpu) return;
  if (sample.event().attr.samples(abi::kSampleCpu)) {
    const std::uint32_t last = std::exchange(last_on_cpu_[sample.fields->cpu], tid);
    const auto left = by_tid_.find(last);
    if (last != tid && left != by_tid_.end()) tracks_[left->second].left_cpu = true;
  }
  if (!is_thread || chosen(time, time + 1) == 0) return;
  Track& track = track_of(tid);
  const std::uint64_t period = std::max<std::uint64_t>(sample.period, 1);
  track.sampled += period;
  const Stack* stack = sample.stack;
  if (stack != nullptr) {
    Wait alone;
    alone.stack = stack;
    alone.location = sample.location_id;
    stack = chains_.stack_of(alone);
  }
  const std::uint32_t row = count(track, WallState::OnCpu, stack, static_cast<double>(period));
  if (observer_.facts_of) keep_span({time, time, row, 0, observer_.keep(sample)});
}

void WallTimes::take(const NonSampleRecord& event) {
  const std::uint64_t time = event.id.time;
  if (auto wait = has_waits_ ? waits_.take_record(event) : std::nullopt; wait) {
    wait->cpu = event.id.cpu;
    add(*wait);
  }
  if (const auto* const fork = std::get_if<format::TaskRecord>(event.record); fork != nullptr && time != 0) {
    end_ = std::max(end_, time);
    if (!symbolize::identifies_task(fork->tid)) return;
    if (fork->is_exit) {
      // Its last samples, and the switch away from it, come later.
      if (const auto known = by_tid_.find(fork->tid); known != by_tid_.end())
        tracks_[known->second].end = time;
      return;
    }
    by_tid_.erase(fork->tid);  // its tid is used again
    known_threads_.erase(fork->tid);
    if (event.thread != nullptr && event.thread->tid == fork->tid) known_threads_[fork->tid] = event.thread;
    Track& track = track_of(fork->tid);
    track.pid = fork->pid;
    track.is_forked = true;
    track.begin = time;
    return;
  }
  if (event.thread != nullptr) known_threads_[event.thread->tid] = event.thread;
}

double WallTimes::chosen(std::uint64_t begin, std::uint64_t end) const {
  if (end <= begin) return 0;
  if (ranges_.empty()) return static_cast<double>(end - begin);
  double sum = 0;
  for (const Filter::TimeRange& range : ranges_) {
    const std::uint64_t first = std::max(begin, range.first);
    const std::uint64_t last = std::min(end, range.last == ~std::uint64_t{0} ? range.last : range.last + 1);
    if (last > first) sum += static_cast<double>(last - first);
  }
  return sum;
}

std::uint32_t WallTimes::count(const Track& track, WallState state, const Stack* stack, double time,
                               std::uint32_t facts) {
  if (time <= 0) return kNoRow;
  // The rows of a thread are found by the index of its track; see finish().
  const std::uint32_t thread = track.number;
  const StackId of_stack = stack == nullptr ? kNo<StackId> : stack->id;
  const auto is_same = [&](const WallRow& known) {
    return known.thread == thread && known.state == state && known.stack == stack && known.facts == facts;
  };
  const std::uint64_t hash = by_row_.hash(thread, static_cast<std::uint32_t>(state), of_stack, facts);
  WallRow& row = find_or_add(by_row_, hash, rows_, is_same, {thread, state, stack, 0, facts});
  row.time += time;
  return static_cast<std::uint32_t>(&row - rows_.data());
}

void WallTimes::keep_span(const WallSpan& span) {
  if (observer_.facts_of && span.row != kNoRow) spans_.push_back(span);
}

void WallTimes::keep_gap(const Track& track, std::uint64_t begin, std::uint64_t end, WallState state) {
  if (observer_.facts_of && begin < end) gaps_.push_back({begin, end, track.number, state});
}

// Of waits without events only their time is known: it was before the next event.
void WallTimes::add_skipped(Track& track, std::uint64_t from, std::uint64_t to) {
  const double skipped = chosen(from, to);
  keep_span({from, to, count(track, WallState::NoReason, nullptr, skipped)});
  track.off += skipped;
  track.skipped += skipped;
}

void WallTimes::add_estimate(Track& track, std::uint32_t row, const Wait& wait, double time) {
  if (row == kNoRow || wait.weight <= wait.duration) return;
  const double estimate =
      time * static_cast<double>(wait.weight - wait.duration) / static_cast<double>(wait.duration);
  if (estimates_.size() <= row) estimates_.resize(row + std::size_t{1});
  estimates_[row] += estimate;
  track.estimate += estimate;
}

bool WallTimes::is_of_skipped(const WallRow& row) const {
  return row.state == WallState::NoReason && row.facts == 0 && tracks_[row.thread].skipped > 0;
}

// Divides the time of each thread's waits without events among its rows, as the estimates are to each other.
void WallTimes::divide_skipped() {
  estimates_.resize(rows_.size());
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    WallRow& row = rows_[i];
    const Track& track = tracks_[row.thread];
    if (track.estimate <= 0) continue;
    if (is_of_skipped(row)) row.time = std::max(row.time - track.skipped, 0.0);
    row.time += track.skipped * estimates_[i] / track.estimate;
  }
  for (const Track& track : tracks_) (track.estimate > 0 ? divided_ : skipped_) += track.skipped;
}

// Time between two waits of a thread is not counted here: it ran.
void WallTimes::add_known(Track& track, const Wait& wait) {
  std::uint64_t queued_from = wait.end - std::min(wait.queued, wait.end);
  if (!wait.has_begin && track.is_forked)
    queued_from = std::min(track.begin, wait.end);  // it waited for its first CPU
  const std::uint64_t begin = wait.has_begin ? wait.begin() : queued_from;
  const std::uint64_t skipped_from = begin - std::min(begin, wait.skipped);
  if (!track.has_waits) {
    const bool may_have_slept = !waits_.has_switches() && !waits_.has_queues();
    begin_at(track, std::min(begin, std::max(skipped_from, begin_)),
             !wait.has_begin || may_have_slept ? WallState::Before : WallState::OnCpu);
    track.was_off_before = !wait.has_begin;
  }
  if (wait.skipped > 0) add_skipped(track, std::max(skipped_from, track.covered), begin);
  const std::uint64_t from = std::max(begin, track.covered), middle = std::max(queued_from, from);
  if (wait.end <= from) return;
  const double blocked = chosen(from, std::min(middle, wait.end)), runnable = chosen(middle, wait.end);
  Wait queue = wait;
  queue.wakers = {};  // the waker did not cause the wait for a CPU
  const Wait& asleep = observer_.facts_of ? queue : wait;
  const std::uint32_t facts = observer_.facts_of ? observer_.facts_of(wait) : 0;
  const auto chain_of = [this](const Wait& one) {
    return one.stack == nullptr ? nullptr : chains_.stack_of(one);
  };
  const std::uint64_t waits = wait.duration == 0 ? 1 : wait.weight / wait.duration;
  const auto add_part = [&](std::uint64_t first, std::uint64_t last, std::uint32_t row, double time) {
    keep_span({first, last, row, static_cast<std::uint32_t>(std::min<std::uint64_t>(waits, kMostWaits)),
               wait.kept, wait.cpu});
    add_estimate(track, row, wait, time);
  };
  add_part(from, std::min(middle, wait.end),
           count(track, state_of(wait.stack), chain_of(asleep), blocked, facts), blocked);
  add_part(middle, wait.end, count(track, WallState::Runnable, chain_of(queue), runnable, facts), runnable);
  has_preempted_ = has_preempted_ || (!wait.is_queue && wait.queued == wait.duration);
  track.off += blocked + runnable;
  track.covered = wait.end;
}

// In that time it waited, and then ran until its next sleep.
void WallTimes::add_lost(const Wait& wait) {
  if (!symbolize::identifies_task(wait.tid)) return;
  Track& track = track_of(wait.tid);
  if (!track.has_waits) begin_at(track, wait.begin(), WallState::OnCpu);
  track.lost += chosen(std::max(wait.begin(), track.covered), wait.end);
  keep_gap(track, std::max(wait.begin(), track.covered), wait.end, WallState::Unknown);
  track.covered = std::max(track.covered, wait.end);
  ++lost_;
}

void WallTimes::begin_at(Track& track, std::uint64_t time, WallState lead) {
  track.has_waits = true;
  track.known_from = track.covered = std::max(time, track.begin);
  track.lead = lead;
}

// Adds the last time in a run queue. It counts once it is clear that no wait includes it. A queue time after
// a wake-up follows a wait; if that wait was not recorded, the thread may have slept since the wait before.
void WallTimes::add_queue(Track& track) {
  if (!track.queue) return;
  const Wait queue = *std::exchange(track.queue, std::nullopt);
  const std::uint64_t begin = queue.begin();
  const bool has_slept = queue.was_woken && (track.has_waits ? begin > track.covered : !track.is_forked);
  if (!track.has_waits) {
    begin_at(track, begin, has_slept ? WallState::Before : WallState::OnCpu);
  } else if (has_slept) {
    track.vague += chosen(track.covered, begin);
    keep_gap(track, track.covered, begin, WallState::NoReason);
  }
  track.has_unseen_sleeps |= has_slept;
  Wait known = queue;
  known.stack = nullptr;
  add_known(track, known);
}

void WallTimes::add(const Wait& wait) {
  Track& track = track_of(wait.tid);
  if (track.end != 0) track.end = std::max(track.end, wait.end);
  end_ = std::max(end_, wait.end);
  if (wait.is_queue) {
    add_queue(track);
    // The end of the wait that is counted already: its event came first, some microseconds earlier.
    if (wait.was_woken && wait.begin() < track.covered) return;
    track.queue = wait;
    track.queue->wakers = {};
    return;
  }
  // Two events may describe the same return to a CPU, in either order.
  if (track.queue && wait.has_begin && wait.begin() <= track.queue->begin()) track.queue.reset();
  add_queue(track);
  add_known(track, wait);
  track.has_seen_sleeps = true;
  if (chains_.bytes() <= kMostChainBytes || leaves_wakers_out_) return;
  leaves_wakers_out_ = true;
  waits_.leave_wakers_out();
}

WallState WallTimes::state_at(LocationId location) {
  const auto [known, is_new] = states_.try_emplace(location, WallState::Unknown);
  if (!is_new) return known->second;
  const Location& where = session_->resolver().location(location);
  if (where.cpumode != abi::kCpumodeKernel) return known->second;
  for (const symbolize::Frame& frame : session_->resolver().frames(where)) {
    const auto* const row = std::ranges::find_if(kWaitsIn, [&](const WaitRow& one) {
      return std::ranges::any_of(one.prefixes,
                                 [&](auto prefix) { return frame.function.starts_with(prefix); });
    });
    if (row == std::end(kWaitsIn)) continue;
    known->second = row->state;
    break;
  }
  return known->second;
}

WallState WallTimes::state_of(const Stack* stack) {
  if (stack == nullptr) return WallState::NoReason;
  const auto [known, is_new] = state_of_stack_.try_emplace(stack, WallState::Blocked);
  if (!is_new) return known->second;
  for (const LocationId location : stack->frames) {
    const WallState state = state_at(location);
    if (state == WallState::Unknown) continue;
    known->second = state;
    break;
  }
  return known->second;
}

// The factor for the times of its samples: samples have periods, which must add up to the time on the CPU.
// The part of time between waits in which a thread was not on the CPU, as a clock would have sampled it
// there: the event of a wait is lost. A clock may lose samples, too.
static double unseen_of(double time, double sampled) {
  constexpr double kSeen = 0.2, kMuch = 3e8;  // ns
  return sampled < kSeen * time && time - sampled > kMuch ? time - sampled : 0;
}

double WallTimes::finish(Track& track) {
  add_queue(track);
  // The recording begins with the first sample: processes are followed before events are counted. A wait that
  // began earlier is part of its thread's time, and not of other threads' time.
  const std::uint64_t begin =
      std::max(track.begin, track.has_waits ? std::min(begin_, track.known_from) : begin_);
  const std::uint64_t end = std::max({begin, track.covered, track.end != 0 ? track.end : end_});
  const double life = chosen(begin, end), sampled = static_cast<double>(track.sampled);
  threads_.push_back({track.pid, track.tid, track.thread != nullptr ? track.thread->comm : std::string_view(),
                      begin, end, life});
  // If none of its sleeps is recorded, it may sleep at the end as well.
  if (is_clock_ && track.has_unseen_sleeps && !track.has_seen_sleeps) {
    track.vague += chosen(std::max(begin, track.covered), end);
    keep_gap(track, std::max(begin, track.covered), end, WallState::NoReason);
  }
  double on_cpu = 0;
  if (!track.has_waits) {
    // It never left the CPU, though the capture would show it. But recorders leave out waits of tacho itself.
    const bool is_always_on =
        (waits_.has_switches() || waits_.has_queues()) && track.sampled > 0 && !track.left_cpu;
    on_cpu = is_always_on ? life : is_clock_ ? std::min(life, sampled) : 0;
    count(track, WallState::Unknown, nullptr, life - on_cpu);
    if (!is_always_on) keep_gap(track, begin, end, WallState::Unknown);
  } else {
    const double lead = track.lead == WallState::Before ? chosen(begin, track.known_from) : 0;
    const double vague = track.vague + (track.was_off_before ? 0 : lead);
    const double all = std::max(0.0, life - track.off - track.lost - track.vague - lead);
    const double unseen = is_clock_ ? unseen_of(all, sampled) : 0;
    const double sure = all - unseen;
    const double more = is_clock_ ? std::max(sampled - sure, 0.0) : 0;  // according to samples
    const double in_lost = std::min(more, track.lost), in_vague = std::min(more - in_lost, vague);
    on_cpu = sure + in_lost + in_vague;
    if (lead > 0) keep_gap(track, begin, track.known_from, WallState::Before);
    if (unseen > 0) keep_gap(track, begin, end, WallState::Unknown);
    const double before = track.was_off_before ? lead : std::min(lead, vague - in_vague);
    count(track, WallState::Before, nullptr, before);
    count(track, WallState::NoReason, nullptr, vague - in_vague - (track.was_off_before ? 0 : before));
    count(track, WallState::Unknown, nullptr, track.lost - in_lost + unseen);
  }
  if (track.sampled == 0) {
    count(track, WallState::OnCpu, nullptr, on_cpu);
    return 1;
  }
  return on_cpu / sampled;
}

std::string WallTimes::name_of_clock() const {
  const auto first = std::ranges::find(samples_cpu_, true);
  if (first == samples_cpu_.end()) return {};
  return session_->events()[static_cast<std::size_t>(first - samples_cpu_.begin())].name;
}

std::vector<std::string> WallTimes::notes() const {
  std::vector<std::string> notes;
  if (!has_waits_)
    notes.emplace_back(
        "no event says when threads do not run, and their time off the CPU is [not recorded]; record with -g "
        "-e cpu-clock,offcpu,waking,runqlat");
  else if (!waits_.has_switches() && !waits_.has_queues() && !has_preempted_)
    notes.emplace_back(
        "no event says when threads wait for a CPU after they were put aside, and that is part of [on-CPU]; "
        "record with -e cpu-clock,offcpu,waking,runqlat");
  if (!has_samples_) notes.emplace_back("no event says what threads do on the CPU; record cpu-clock as well");
  if (has_waits_ && !has_wakers_)
    notes.emplace_back("no event has wakers; record waking, or sched:sched_waking, too");
  if (lost_ > 0)
    notes.push_back(fmt::format(
        "no event says when {} waits ended, and their time is [not recorded] but for what "
        "samples say; that a thread is back is in the switch of the thread that ran before it, so "
        "record with -a",
        lost_));
  if (divided_ > 0)
    notes.push_back(fmt::format(
        "{:.3f} s of waits are an estimate: a rate limit recorded some of them, which stand for the others",
        divided_ / 1e9));
  if (skipped_ > 0)
    notes.push_back(
        fmt::format("{:.3f} s of waits have no events: a rate limit, or full rings", skipped_ / 1e9));
  if (leaves_wakers_out_)
    notes.push_back(fmt::format("the last waits are without wakers, as the chains of those before take {} MB",
                                kMostChainBytes >> 20));
  for (const format::Event& event : session_->events()) {
    const bool is_part =
        event.name == "sched:sched_switch" && (event.attr.has(abi::kFreq) || event.attr.sample_period > 1);
    if (is_part)
      notes.emplace_back(
          "only some switches were recorded (-F or -c), and times are wrong; record sched:sched_switch with "
          "-c 1");
  }
  return notes;
}

void WallTimes::finish() {
  for (const Wait& wait : waits_.unfinished(end_)) add(wait);
  std::vector<double> scales(tracks_.size());
  std::vector<std::uint32_t> shown(tracks_.size(), kNotShown);
  for (std::size_t i = 1; i < tracks_.size(); ++i) {
    Track& track = tracks_[i];
    const std::string_view comm = track.thread != nullptr ? track.thread->comm : std::string_view();
    const auto is_wanted = [](const std::vector<std::uint32_t>& list, std::uint32_t number) {
      return list.empty() || std::ranges::find(list, number) != list.end();
    };
    if (!is_wanted(who_.pids, track.pid) || !is_wanted(who_.tids, track.tid) || !who_.accepts_comm(comm))
      continue;
    shown[i] = static_cast<std::uint32_t>(threads_.size());
    scales[i] = finish(track);
  }
  divide_skipped();
  keep_shown(shown, scales);
}

// Leaves out rows of threads that are not shown, and numbers threads as threads() does.
void WallTimes::keep_shown(const std::vector<std::uint32_t>& shown, const std::vector<double>& scales) {
  std::vector<WallRow> rows;
  std::vector<std::uint32_t> moved(rows_.size(), kNoRow);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    WallRow row = rows_[i];
    if (shown[row.thread] == kNotShown) continue;
    if (row.state == WallState::OnCpu) row.time *= scales[row.thread];
    row.thread = shown[row.thread];
    // A view of single waits is shown when a thread had waits without events.
    if (row.time <= 0 && !(observer_.facts_of && is_of_skipped(rows_[i]))) continue;
    moved[i] = static_cast<std::uint32_t>(rows.size());
    rows.push_back(row);
  }
  rows_ = std::move(rows);
  std::erase_if(gaps_, [&](const WallGap& gap) { return shown[gap.thread] == kNotShown; });
  for (WallGap& gap : gaps_) gap.thread = shown[gap.thread];
  for (WallSpan& span : spans_) span.row = moved[span.row];
  std::erase_if(spans_, [](const WallSpan& span) { return span.row == kNoRow; });
}

}  // namespace tacho::report
