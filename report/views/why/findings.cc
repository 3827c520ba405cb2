#include "report/views/why/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "report/views/why/cpu_tree.h"
#include "report/views/why/lock_holders.h"
#include "report/views/why/shared_conditions.h"
#include "report/views/why/thread_spans.h"

namespace tacho::report {
namespace {

// A cause is a finding if it takes this share of the life of the threads that have it, and of all time that
// is not idle. On the CPU threads do what they are there for: it takes more of it to be the reason that
// something is slow.
constexpr double kLeastOfThreads = 0.1, kLeastOnCpu = 0.25, kLeastOfBusy = 0.02;
// A capture's clock has 99 Hz: less than this cannot be told from chance.
constexpr double kLeastTime = 2e7;  // ns
// Processes that live shorter than this are counted together if there are so many in a second.
constexpr std::uint64_t kShortLife = kLongWait;  // ns
constexpr double kManyForks = 20;

// What the rows of one finding have in common.
struct Key {
  Cause cause = Cause::Other;
  std::uint32_t pid = 0;       // of locks
  std::uint64_t lock = 0;      // address
  std::string_view function;   // of the program
  std::string_view subject{};  // file, peer, process
  bool operator<(const Key& other) const {
    return std::tie(cause, pid, lock, function, subject) <
           std::tie(other.cause, other.pid, other.lock, other.function, other.subject);
  }
};

struct Group {
  double time = 0;
  std::map<const Stack*, double> stacks;
  std::map<std::uint32_t, double> threads;  // by number
  std::vector<WaitTime> waits;
  std::vector<WallSpan> spans;  // of locks, and with operations
  std::map<std::string_view, double> calls, disks;
  std::map<std::string, double> runners;           // who had the CPU
  std::map<std::string, double> peers;             // whose answers ended waits in epoll
  std::uint64_t samples = 0;                       // on the CPU
  std::uint64_t began_before = 0, unfinished = 0;  // waits
  std::vector<std::uint32_t> rows;
};

class Finder {
 public:
  Finder(Session& session, const WallTimes& times, const WaitFactsTable& facts)
      : times_(times), facts_(facts), stacks_(session), spans_(times), trees_(session, stacks_, times) {}

  Answer find(SlowIntervals* slow) {
    measure();
    classify();
    choose_conditions();
    choose_timers();
    group();
    if (slow != nullptr) {
      compare(*slow);
    } else {
      add_waits();
      collect();
    }
    return std::move(answer_);
  }

 private:
  void measure() {
    std::set<std::uint32_t> processes;
    std::uint64_t begin = ~std::uint64_t{0}, end = 0;
    for (const WallThread& thread : times_.threads()) {
      answer_.wall += thread.life;
      processes.insert(thread.pid);
      begin = std::min(begin, thread.begin);
      end = std::max(end, thread.end);
      families_.add_name(thread.comm);
    }
    for (const WallRow& row : times_.rows()) {
      const WaitFacts& facts = facts_[row.facts];
      for (const std::string_view name : {facts.runner, facts.holder, facts.waker.comm})
        families_.add_name(name);
    }
    answer_.threads = times_.threads().size();
    answer_.processes = processes.size();
    answer_.span = end > begin ? static_cast<double>(end - begin) : 0;
    is_short_.resize(times_.threads().size());
    for (std::size_t i = 0; i < is_short_.size(); ++i) {
      const WallThread& thread = times_.threads()[i];
      is_short_[i] = thread.begin > begin && thread.end < end && thread.end - thread.begin < kShortLife;
      if (is_short_[i] && thread.pid == thread.tid) ++answer_.forks;
    }
    has_storm_ = static_cast<double>(answer_.forks) > kManyForks * answer_.span / 1e9;
  }

  std::span<const NamedFrame> frames_of(const WallRow& row) {
    return row.stack == nullptr ? std::span<const NamedFrame>() : stacks_.frames(*row.stack);
  }

  void classify() {
    for (const WallRow& row : times_.rows()) {
      const auto frames = frames_of(row);
      const Cause cause = cause_of(row.state, frames, facts_[row.facts]);
      causes_.push_back(cause);
      locks_.push_back(cause == Cause::Lock ? lock_of(facts_[row.facts], frames) : 0);
    }
    if (has_storm_) choose_storm();
    for (Cause& cause : causes_)
      if (cause == Cause::Child && answer_.processes > 1) cause = Cause::IdleChild;
  }

  // A storm is the time of processes that live for a moment, of starting them, and of waits for their ends.
  // Their sleeps and waits for work, and waits for such processes, stay what they are: one process that did
  // the same work would wait, too.
  void choose_storm() {
    struct Spent {
      double resting = 0, queued = 0;  // ns
    };
    const auto rests = [](Cause cause) { return is_idle(cause) || cause == Cause::Timer; };
    std::vector<Spent> spent(times_.threads().size());
    for (std::size_t i = 0; i < causes_.size(); ++i) {
      const WallRow& row = times_.rows()[i];
      if (rests(causes_[i])) spent[row.thread].resting += row.time;
      if (row.state == WallState::Runnable) spent[row.thread].queued += row.time;
    }
    // It ended a wait; without waits for a CPU it lives for a moment, and has something to do.
    const auto is_of_a_moment = [&](std::uint32_t child) {
      const double life = times_.threads()[child].life - spent[child].queued;
      return life < static_cast<double>(kShortLife) && spent[child].resting <= life / 2;
    };
    std::vector<std::uint64_t> ends(causes_.size());  // of the last wait of each row
    for (const WallSpan& span : times_.spans()) ends[span.row] = std::max(ends[span.row], span.end);
    for (std::size_t i = 0; i < causes_.size(); ++i) {
      const WallRow& row = times_.rows()[i];
      if (causes_[i] == Cause::Unknown) continue;
      const auto frames = frames_of(row);
      bool is_of_storm = (is_short_[row.thread] && !rests(causes_[i])) || is_of_fork(frames);
      if (row.state != WallState::OnCpu && waits_for_child(frames)) {
        const WaitFacts& facts = facts_[row.facts];
        const auto child = facts.waker.tid == 0 ? std::nullopt : spans_.thread_at(facts.waker.tid, ends[i]);
        is_of_storm = child ? is_of_a_moment(*child) : !facts.is_long;
      }
      if (is_of_storm) causes_[i] = Cause::Fork, locks_[i] = 0;
    }
  }

  // The address of the lock. Of a read-write lock whose owner was not known it is that of a futex in it:
  // readers wait for the third word, writers for the fourth.
  static std::uint64_t lock_of(const WaitFacts& facts, std::span<const NamedFrame> frames) {
    constexpr std::uint64_t kWaitedFor = 8;
    const bool is_rwlock = std::ranges::any_of(frames, [](const NamedFrame& frame) {
      return !frame.is_kernel && frame.name.find("pthread_rwlock") != std::string_view::npos;
    });
    if (!is_rwlock || facts.object != WaitObject::Futex || facts.lock < kWaitedFor) return facts.lock;
    return facts.lock / kWaitedFor * kWaitedFor - kWaitedFor;
  }

  static bool is_of_fork(std::span<const NamedFrame> frames) {
    return waits_for_child(frames) || std::ranges::any_of(frames, [](const NamedFrame& frame) {
             const auto has = [&](std::string_view part) {
               return frame.name.find(part) != std::string_view::npos;
             };
             return frame.is_kernel ? frame.name == "kernel_clone"
                                    : frame.is_library && (has("fork") || has("posix_spawn") ||
                                                           has("uv_spawn") || has("execv"));
           });
  }

  // node does so with a loop of its own.
  static bool waits_for_child(std::span<const NamedFrame> frames) {
    return std::ranges::any_of(frames, [](const NamedFrame& frame) {
      return frame.is_kernel
                 ? frame.name == "do_wait"
                 : frame.is_library && frame.name.find("SyncProcessRunner") != std::string_view::npos;
    });
  }

  // What threads give back to each other is work for none of them, unless who has it waits for work: then the
  // others wait for their turn at that, as for that at accept().
  void choose_conditions() {
    LockHolders holders = lock_holders();
    for (const SharedCondition& one : shared_conditions(times_, facts_, spans_, causes_, stacks_)) {
      double time = 0;
      for (const std::size_t row : one.rows) {
        causes_[row] = one.cause, locks_[row] = one.address;
        time += times_.rows()[row].time;
      }
      if (!wait_for_work(holders.holders_of(one.spans, time))) continue;
      for (const std::size_t row : one.rows) causes_[row] = Cause::IdleCondition, locks_[row] = 0;
    }
  }

  // Most of the time.
  static bool wait_for_work(const std::vector<Holder>& holders) {
    double all = 0, idle = 0;
    for (const Holder& holder : holders)
      for (const Doing& doing : holder.doings) {
        all += doing.time;
        if (is_idle(doing.cause)) idle += doing.time;
      }
    return idle > all / 2;
  }

  LockHolders lock_holders() {
    return LockHolders({times_, facts_, spans_, causes_, locks_, stacks_, lock_names_, families_});
  }

  // Waits for points in time are idle if the thread waits for no other work: it is there to do something at
  // times. One that sleeps for moments between waits for a peer asks that again and again.
  void choose_timers() {
    struct Waited {
      double for_work = 0, for_peers = 0, asleep = 0;
      std::uint64_t sleeps = 0;
    };
    std::vector<Waited> by_thread(times_.threads().size());
    for (std::size_t i = 0; i < causes_.size(); ++i) {
      const WallRow& row = times_.rows()[i];
      if (is_idle(causes_[i])) by_thread[row.thread].for_work += row.time;
      if (causes_[i] == Cause::Network) by_thread[row.thread].for_peers += row.time;
      if (causes_[i] == Cause::Timer) by_thread[row.thread].asleep += row.time;
    }
    for (const WallSpan& span : times_.spans())
      if (causes_[span.row] == Cause::Timer) by_thread[times_.rows()[span.row].thread].sleeps += span.waits;
    for (std::size_t i = 0; i < causes_.size(); ++i) {
      constexpr double kMuch = 0.01, kMoment = 2e8;  // ns
      const std::uint32_t number = times_.rows()[i].thread;
      const Waited& waited = by_thread[number];
      const double much = kMuch * times_.threads()[number].life;
      const bool asks_again =
          waited.for_peers >= much && waited.asleep < kMoment * static_cast<double>(waited.sleeps);
      if (causes_[i] == Cause::Timer && waited.for_work < much && !asks_again) causes_[i] = Cause::IdleTimer;
    }
  }

  Key key_of(std::size_t index) {
    const WallRow& row = times_.rows()[index];
    const WaitFacts& facts = facts_[row.facts];
    const auto frames = row.stack == nullptr ? std::span<const NamedFrame>() : stacks_.frames(*row.stack);
    Key key{.cause = causes_[index], .function = own_function(frames)};
    switch (key.cause) {
      case Cause::Lock:
      case Cause::Condition:
        key.pid = facts.pid;
        key.lock = locks_[index];
        if (key.lock != 0)
          key.function = {};
        else if (row.state == WallState::Sleep)
          key.subject = "[of an SQLite database]";
        break;
      case Cause::Runnable:
        key.function = {};
        break;
      case Cause::Network:
        key.subject = facts.name;
        if (!facts.name.empty()) key.function = {};
        break;
      case Cause::Disk:
      case Cause::Fault:
        if (facts.object == WaitObject::File) key.subject = facts.name;
        break;
      case Cause::Throttled:
      case Cause::Fork:
        key.function = {};
        break;
      default:
        break;
    }
    return key;
  }

  void group() {
    group_of_.resize(causes_.size());
    unknown_.resize(times_.threads().size());
    queued_.resize(times_.threads().size());
    for (const WallRow& row : times_.rows())
      if (row.state == WallState::Runnable) queued_[row.thread] += row.time;
    for (std::size_t i = 0; i < causes_.size(); ++i)
      if (causes_[i] == Cause::Unknown) unknown_[times_.rows()[i].thread] += times_.rows()[i].time;
    answer_.unknown = std::accumulate(unknown_.begin(), unknown_.end(), 0.0);
    std::vector<std::uint64_t> samples(causes_.size());
    for (const WallSpan& span : times_.spans()) samples[span.row] += span.begin == span.end ? 1 : 0;
    for (std::size_t i = 0; i < causes_.size(); ++i) {
      const WallRow& row = times_.rows()[i];
      if (is_idle(causes_[i])) answer_.idle += row.time;
      if (causes_[i] == Cause::Unknown) continue;
      if (causes_[i] == Cause::Cpu) {
        trees_.add_row(static_cast<std::uint32_t>(i), samples[i]);
        continue;
      }
      group_of_[i] = &groups_[key_of(i)];
      add_time(*group_of_[i], row, row.time);
      group_of_[i]->samples += samples[i];
      group_of_[i]->rows.push_back(static_cast<std::uint32_t>(i));
    }
  }

  void add_time(Group& group, const WallRow& row, double time) const {
    const WaitFacts& facts = facts_[row.facts];
    group.time += time;
    group.threads[row.thread] += time;
    if (row.stack != nullptr) group.stacks[row.stack] += time;
    if (!facts.call.empty()) group.calls[facts.call] += time;
    if (!facts.disk.empty()) group.disks[facts.disk] += time;
    if (row.state == WallState::Runnable && !facts.runner.empty())
      group.runners[families_.shown_name(facts.runner)] += time;
    if (facts.ready == WaitObject::Connected && !facts.name.empty())
      group.peers[std::string(facts.name)] += time;
  }

  // Other threads have what is waited for, or end the wait.
  static bool has_others(Cause cause) {
    return cause == Cause::Lock || cause == Cause::Condition || cause == Cause::IdleCondition ||
           cause == Cause::IdleInput;
  }

  void add_waits() {
    for (const WallSpan& span : times_.spans())
      if (Group* const group = group_of_[span.row]; group != nullptr && span.end > span.begin) {
        if (span.waits > 0) group->waits.push_back({span.end - span.begin, span.waits});
        const WaitFacts& facts = facts_[times_.rows()[span.row].facts];
        group->began_before += facts.began_before ? 1 : 0;
        group->unfinished += facts.is_unfinished ? 1 : 0;
        if (has_others(causes_[span.row])) group->spans.push_back(span);
      }
  }

  // What one operation took, by cause.
  struct Side {
    std::vector<std::uint64_t> latencies;
    std::map<const Group*, Group> groups;  // of the operations' waits
    double on_cpu = 0;                     // ns
    std::map<std::pair<std::string_view, const Stack*>, std::vector<WallSpan>> samples;  // by function
    double all_samples = 0;
    std::map<std::uint32_t, double> threads;  // with time on the CPU
    double per(double time) const {
      return latencies.empty() ? 0 : time / static_cast<double>(latencies.size());
    }
  };

  void add_operation(const SlowInterval& interval, Side& side) {
    const auto thread = spans_.thread_at(interval.tid, interval.end);
    side.latencies.push_back(interval.latency);
    if (!thread) return;
    double off = 0;
    for (const WallSpan& span : spans_.between(*thread, interval.begin, interval.end)) {
      const WallRow& row = times_.rows()[span.row];
      if (span.begin == span.end) {
        const auto frames = row.stack == nullptr ? std::span<const NamedFrame>() : stacks_.frames(*row.stack);
        side.samples[{own_function(frames), row.stack}].push_back(span);
        ++side.all_samples;
        continue;
      }
      const std::uint64_t from = std::max(span.begin, interval.begin), to = std::min(span.end, interval.end);
      if (to <= from) continue;
      off += static_cast<double>(to - from);
      if (group_of_[span.row] == nullptr) continue;
      const auto time = static_cast<double>(to - from);
      Group& group = side.groups[group_of_[span.row]];
      add_time(group, row, time);
      if (span.waits > 0) group.waits.push_back({to - from, span.waits});
      group.spans.push_back({from, to, span.row, span.waits, span.kept});
    }
    const double on = std::max(static_cast<double>(interval.end - interval.begin) - off, 0.0);
    side.on_cpu += on;
    side.threads[*thread] += on;
  }

  static Operations::Side side_of(Side& side) {
    Operations::Side made{.count = side.latencies.size()};
    if (made.count == 0) return made;
    const auto middle = side.latencies.begin() + static_cast<std::ptrdiff_t>(made.count / 2);
    std::ranges::nth_element(side.latencies, middle);
    made.median = *middle;
    made.least = std::ranges::min(side.latencies);
    return made;
  }

  // What slow operations have more of than the others.
  void compare(SlowIntervals& intervals) {
    Side slow, others;
    for (const SlowInterval& one : intervals.choose_slow()) add_operation(one, one.is_slow ? slow : others);
    answer_.operations = {intervals.name(), side_of(slow), side_of(others)};
    name_locks();
    LockHolders holders = lock_holders();
    for (auto& [key, group] : groups_) {
      Group& of_slow = slow.groups[&group];
      const double more = slow.per(of_slow.time), less = others.per(others.groups[&group].time);
      if (more <= less) continue;
      TimeFinding made = finding_of(key, of_slow);
      made.of_slow = more;
      made.of_others = less;
      if (has_others(key.cause)) made.holders = holders.holders_of(of_slow.spans, of_slow.time);
      made.spans = std::move(of_slow.spans);
      answer_.findings.push_back(std::move(made));
    }
    answer_.without_holders = holders.left_out();
    add_on_cpu(slow, others);
    std::ranges::stable_sort(answer_.findings, std::greater(),
                             [](const TimeFinding& one) { return one.of_slow - one.of_others; });
  }

  // Time on the CPU by function, as samples divide it.
  void add_on_cpu(const Side& slow, const Side& others) {
    struct OnCpu {
      double of_slow = 0, of_others = 0;
      std::size_t most = 0;
      const Stack* stack = nullptr;
      std::vector<WallSpan> samples;
    };
    std::map<std::string_view, OnCpu> functions;
    for (const auto* const side : {&slow, &others}) {
      if (side->all_samples == 0)
        functions[""].*(side == &slow ? &OnCpu::of_slow : &OnCpu::of_others) = side->per(side->on_cpu);
      for (const auto& [at, hits] : side->samples) {
        OnCpu& one = functions[at.first];
        const double time = side->per(side->on_cpu) * static_cast<double>(hits.size()) / side->all_samples;
        (side == &slow ? one.of_slow : one.of_others) += time;
        if (side != &slow) continue;
        one.samples.insert(one.samples.end(), hits.begin(), hits.end());
        if (hits.size() > one.most) one.stack = at.second;
        one.most = std::max(one.most, hits.size());
      }
    }
    for (auto& [name, one] : functions) {
      if (one.of_slow <= one.of_others) continue;
      TimeFinding made{.cause = Cause::Cpu,
                       .time = one.of_slow * static_cast<double>(slow.latencies.size()),
                       .count = one.samples.size(),
                       .function = std::string(name),
                       .threads = thread_names(slow.threads),
                       .spans = std::move(one.samples),
                       .of_slow = one.of_slow,
                       .of_others = one.of_others};
      if (one.stack != nullptr) made.stack = shown_chain(stacks_.frames(*one.stack));
      std::vector<std::uint32_t> rows;
      for (const WallSpan& sample : made.spans) rows.push_back(sample.row);
      made.code = code_of(rows);
      answer_.findings.push_back(std::move(made));
    }
  }

  // The function in whose code most of the rows' time is.
  std::string code_of(const std::vector<std::uint32_t>& rows) {
    std::map<std::string_view, double> times;
    for (const std::uint32_t index : rows) {
      const WallRow& row = times_.rows()[index];
      if (row.stack != nullptr && !row.stack->frames.empty())
        times[stacks_.code_at(row.stack->frames.front())] += row.time;
    }
    return heaviest_of(times);
  }

  // The longest first.
  static std::vector<NamedTime> sorted(const std::map<std::string, double>& by_name) {
    std::vector<NamedTime> parts;
    parts.reserve(by_name.size());
    for (const auto& [name, time] : by_name) parts.push_back({name, time});
    std::ranges::stable_sort(parts, std::greater(), &NamedTime::time);
    return parts;
  }
  static std::string heaviest_of(const std::map<std::string_view, double>& by_name) {
    const auto most = std::ranges::max_element(by_name, {}, [](const auto& one) { return one.second; });
    return most == by_name.end() ? std::string() : std::string(most->first);
  }

  // "worker-*", 2.5 s.
  std::vector<NamedTime> thread_names(const std::map<std::uint32_t, double>& threads) const {
    std::map<std::string, double> by_name;
    for (const auto& [number, time] : threads)
      by_name[families_.shown_name(times_.threads()[number].comm)] += time;
    return sorted(by_name);
  }

  // Without time that is not recorded.
  double life_of(const std::map<std::uint32_t, double>& threads) const {
    double life = 0;
    for (const auto& [number, time] : threads) life += times_.threads()[number].life - unknown_[number];
    return life;
  }

  // Of processes that live for a moment: without threads that start one now and then.
  double life_of(Cause cause, const std::map<std::uint32_t, double>& threads) const {
    if (cause != Cause::Fork) return life_of(threads);
    std::map<std::uint32_t, double> much;
    for (const auto& [number, time] : threads)
      if (time >= kLeastOfThreads * times_.threads()[number].life) much[number] = time;
    return life_of(much);
  }

  std::string subject_of(const Key& key) {
    if (key.lock != 0) return lock_names_.at({key.pid, key.lock});
    return std::string(key.subject);
  }

  TimeFinding finding_of(const Key& key, Group& group) {
    TimeFinding made{.cause = key.cause,
                     .time = group.time,
                     .function = std::string(key.function),
                     .threads = thread_names(group.threads),
                     .began_before = group.began_before,
                     .unfinished = group.unfinished,
                     .pid = key.pid,
                     .life = life_of(key.cause, group.threads),
                     .rows = std::move(group.rows)};
    if (!group.waits.empty()) {
      for (const WaitTime& one : group.waits) made.count += one.waits;
      made.median = median_of(group.waits);
      made.longest = group.waits.back().duration;
    }
    const auto heaviest = std::ranges::max_element(
        group.stacks, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (heaviest != group.stacks.end()) {
      made.stack = shown_chain(stacks_.frames(*heaviest->first));
      if (made.function.empty()) made.function = own_function(stacks_.frames(*heaviest->first));
    }
    made.call = heaviest_of(group.calls);
    made.disk = heaviest_of(group.disks);
    made.subject = subject_of(key);
    if (key.cause == Cause::Runnable) {
      made.parts = sorted(group.runners);
      constexpr double kMostOfIt = 0.5;
      if (!made.parts.empty() && made.parts.front().time >= kMostOfIt * group.time)
        made.subject = made.parts.front().name;
    }
    if (made.count == 0) made.count = group.samples;
    return made;
  }

  void name_locks() {
    for (std::size_t i = 0; i < causes_.size(); ++i) {
      const WaitFacts& facts = facts_[times_.rows()[i].facts];
      if (locks_[i] == 0) continue;
      lock_names_.try_emplace({facts.pid, locks_[i]},
                              causes_[i] == Cause::Condition
                                  ? stacks_.condition(facts.variable)
                                  : stacks_.variable(facts.variable, facts.lock - locks_[i]));
    }
  }

  bool is_large(const TimeFinding& finding) const {
    const bool is_on_cpu = finding.cause == Cause::Cpu;
    const double busy = answer_.wall - answer_.idle - answer_.unknown;
    return finding.time >= kLeastTime && finding.time >= kLeastOfBusy * busy &&
           finding.time >= (is_on_cpu ? kLeastOnCpu : kLeastOfThreads) * finding.life;
  }

  // On the CPU: the rest of the threads' lives, if they wait for a CPU. What takes a quarter of that would be
  // a finding on a machine that has enough of them.
  double life_with_cpu(const std::map<std::uint32_t, double>& threads) const {
    double life = life_of(threads);
    for (const auto& [number, time] : threads) life -= queued_[number];
    return life;
  }

  void take(TimeFinding finding) {
    if (is_large(finding))
      answer_.findings.push_back(std::move(finding));
    else
      answer_.rest += finding.time;
  }

  IdleTime idle_time_of(const Key& key, Group& group, LockHolders& holders) {
    TimeFinding of = finding_of(key, group);
    const std::size_t count = group.threads.size();
    IdleTime made{.cause = key.cause,
                  .function = std::move(of.function),
                  .call = std::move(of.call),
                  .threads = fmt::format("{}{}", of.threads.empty() ? "" : of.threads.front().name,
                                         count > 1 ? fmt::format(" ({} threads)", count) : ""),
                  .time = of.time,
                  .count = of.count,
                  .median = of.median,
                  .longest = of.longest,
                  .life = of.life,
                  .rows = std::move(of.rows)};
    if (has_others(key.cause)) made.ended_by = holders.holders_of(group.spans, group.time);
    made.peers = sorted(group.peers);
    return made;
  }

  using TimesByName = std::map<std::string, double>;
  // What the threads of each family do on the CPU: by function, as far as these are large. "": all of it.
  std::map<std::string, TimesByName> functions_by_family(const std::vector<CpuPart>& parts) const {
    std::map<std::string, TimesByName> families;
    for (const WallRow& row : times_.rows())
      if (row.state == WallState::OnCpu)
        families[families_.shown_name(times_.threads()[row.thread].comm)][""] += row.time;
    for (const CpuPart& part : parts)
      for (const auto& [number, time] : part.threads)
        families[families_.shown_name(times_.threads()[number].comm)][part.function] += time;
    return families;
  }

  static std::vector<NamedTime> runner_functions_of(const NamedTime& runner, TimesByName functions) {
    const double all = functions[""];
    functions.erase("");
    std::vector<NamedTime> made = sorted(functions);
    constexpr double kLeastPart = 0.1;
    std::erase_if(made, [&](const NamedTime& one) { return one.time < kLeastPart * all; });
    for (NamedTime& one : made) one.time *= runner.time / all;
    return made;
  }

  void collect() {
    name_locks();
    LockHolders holders = lock_holders();
    std::vector<CpuPart> cpu_parts = trees_.take_parts();
    const auto families = functions_by_family(cpu_parts);
    for (auto& [key, group] : groups_) {
      if (is_idle(key.cause)) continue;
      TimeFinding made = finding_of(key, group);
      if (has_others(key.cause)) made.holders = holders.holders_of(group.spans, group.time);
      if (key.cause == Cause::Fork) made.count = answer_.forks;
      if (key.cause == Cause::Runnable && !made.parts.empty())
        if (const auto runner = families.find(made.parts.front().name); runner != families.end())
          made.runner_functions = runner_functions_of(made.parts.front(), runner->second);
      take(std::move(made));
    }
    answer_.without_holders = holders.left_out();
    for (auto& [key, group] : groups_)
      if (is_idle(key.cause)) answer_.waits_for_work.push_back(idle_time_of(key, group, holders));
    for (CpuPart& part : cpu_parts) {
      TimeFinding made{.cause = part.cause,
                       .time = part.time,
                       .count = part.samples,
                       .function = std::move(part.function),
                       .call = std::move(part.call),
                       .stack = std::move(part.stack),
                       .threads = thread_names(part.threads),
                       .life = life_with_cpu(part.threads),
                       .rows = std::move(part.rows)};
      made.code = code_of(made.rows);
      for (auto& [name, time] : part.callees) made.parts.push_back({name, time});
      take(std::move(made));
    }
    answer_.rest += trees_.rest();
    std::ranges::stable_sort(answer_.findings, std::greater(), &TimeFinding::time);
    std::ranges::stable_sort(answer_.waits_for_work, std::greater(), &IdleTime::time);
  }

  const WallTimes& times_;
  const WaitFactsTable& facts_;
  NamedChains stacks_;
  ThreadSpans spans_;
  CpuTrees trees_;
  NameFamilies families_;
  Answer answer_;
  bool has_storm_ = false;
  std::vector<bool> is_short_;        // by thread: it began and ended in the recording
  std::vector<double> unknown_;       // ns, by thread
  std::vector<double> queued_;        // ns of waits for a CPU, by thread
  std::vector<Cause> causes_;         // by row
  std::vector<std::uint64_t> locks_;  // by row: addresses; 0: none
  std::vector<Group*> group_of_;      // by row; null: on the CPU, or unknown
  std::map<Key, Group> groups_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> lock_names_;  // by pid and address
};

}  // namespace

Answer find_causes(Session& session, const WallTimes& times, const WaitFactsTable& facts,
                   SlowIntervals* slow) {
  return Finder(session, times, facts).find(slow);
}

}  // namespace tacho::report
