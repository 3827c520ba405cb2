#include "report/views/why/shared_conditions.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace tacho::report {
namespace {

// A condition of the C library has two futexes, which are the halves of such a word.
constexpr std::uint64_t kWord = 8;
// Of the time of waits whose waker is known: waits that threads ended that wait for it too.
constexpr double kMostByWaiters = 0.8;
// Of the time of all waits: the waker is known.
constexpr double kMostKnown = 0.5;
// Of the time of a wait: what is waited for was in the hands of the thread that ended the wait.
constexpr double kLeastHeld = 0.2;
// Spans that are looked at in all. A capture whose maker wants it has more.
constexpr std::uint64_t kMostLooks = std::uint64_t{1} << 23;

struct AtAddress {
  SharedCondition found;
  std::set<std::uint32_t> threads;  // by number
  bool is_python_lock = false;
};
using ByAddress = std::map<std::pair<std::uint32_t, std::uint64_t>, AtAddress>;  // with the pid

// A threading.Lock of Python. One that is part of a threading.Condition is made for a single wait.
bool is_python_lock(std::span<const NamedFrame> frames) {
  return std::ranges::any_of(
      frames, [](const NamedFrame& frame) { return frame.name.starts_with("lock_PyThread_acquire_lock"); });
}

// Who gives what the waits are for.
class Givers {
 public:
  Givers(const WallTimes& times, const WaitFactsTable& facts, const ThreadSpans& spans,
         const std::vector<Cause>& causes)
      : times_(times), facts_(facts), spans_(spans), causes_(causes) {}

  // Whether most of the time was ended by threads that wait for the same.
  bool are_waiters(AtAddress& waits) {
    std::ranges::stable_sort(waits.found.spans, {}, &WallSpan::end);
    last_.clear();
    by_waiter_.clear();
    double all = 0, known = 0, by_waiters = 0;
    for (const WallSpan& span : waits.found.spans) {
      const WallRow& row = times_.rows()[span.row];
      const auto time = std::max(span.waits, 1U) * static_cast<double>(span.end - span.begin);
      const bool is_by_waiter = is_given_by_waiter(span, waits);
      all += time;
      if (!facts_[row.facts].waker.comm.empty()) known += time;
      if (is_by_waiter) by_waiters += time;
      last_[row.thread] = by_waiter_.size();
      by_waiter_.push_back(is_by_waiter);
    }
    return known > 0 && known >= kMostKnown * all && by_waiters >= kMostByWaiters * known;
  }

 private:
  // Consumers of a queue wake each other, too, right after they were woken: then it is given by the one who
  // woke the first.
  bool is_given_by_waiter(const WallSpan& wait, const AtAddress& waits) {
    const WallRow& row = times_.rows()[wait.row];
    const Waker& waker = facts_[row.facts].waker;
    if (waker.is_interrupt || waker.tid == 0) return false;
    const auto by = spans_.thread_at(waker.tid, wait.end);
    if (!by || *by == row.thread || !waits.threads.contains(*by)) return false;
    const auto last = last_.find(*by);
    if (last == last_.end() || waits.found.spans[last->second].end <= wait.begin) return true;
    const double held = held_by(*by, waits.found.spans[last->second].end, wait.end);
    return held >= kLeastHeld * static_cast<double>(wait.end - wait.begin) || by_waiter_[last->second];
  }

  // ns in which the thread did something: it did not wait for a CPU, or for its turn.
  double held_by(std::uint32_t thread, std::uint64_t begin, std::uint64_t end) {
    auto held = static_cast<double>(end - begin);
    const auto between = spans_.between(thread, begin, end);
    steps_ += between.size();
    if (steps_ > kMostLooks) return 0;
    for (const WallSpan& span : between) {
      const Cause cause = causes_[span.row];
      if (cause == Cause::Runnable || cause == Cause::Lock || cause == Cause::IdleCondition)
        held -= static_cast<double>(std::min(span.end, end) - std::min(std::max(span.begin, begin), end));
    }
    return held;
  }

  const WallTimes& times_;
  const WaitFactsTable& facts_;
  const ThreadSpans& spans_;
  const std::vector<Cause>& causes_;
  std::unordered_map<std::uint32_t, std::size_t> last_;  // by thread: its last wait so far
  std::vector<bool> by_waiter_;                          // by wait
  std::uint64_t steps_ = 0;
};

// Whether several threads wait at once.
bool overlap(std::vector<WallSpan> waits) {
  std::ranges::sort(waits, {}, &WallSpan::begin);
  return std::ranges::adjacent_find(
             waits, [](const WallSpan& a, const WallSpan& b) { return b.begin < a.end; }) != waits.end();
}

}  // namespace

std::vector<SharedCondition> shared_conditions(const WallTimes& times, const WaitFactsTable& facts,
                                               const ThreadSpans& spans, const std::vector<Cause>& causes,
                                               NamedChains& stacks) {
  ByAddress by_address;
  std::vector<AtAddress*> waits_of(times.rows().size());
  for (std::size_t i = 0; i < times.rows().size(); ++i) {
    const WallRow& row = times.rows()[i];
    const WaitFacts& of_row = facts[row.facts];
    if (causes[i] != Cause::IdleCondition || of_row.lock == 0 || row.stack == nullptr) continue;
    const std::uint64_t word = of_row.lock / kWord * kWord;
    AtAddress& waits = by_address[{of_row.pid, word}];
    waits.found.address = word;
    waits.found.rows.push_back(i);
    waits.threads.insert(row.thread);
    waits.is_python_lock = waits.is_python_lock || is_python_lock(stacks.frames(*row.stack));
    waits_of[i] = &waits;
  }
  for (const WallSpan& span : times.spans())
    if (waits_of[span.row] != nullptr && span.end > span.begin)
      waits_of[span.row]->found.spans.push_back(span);
  std::vector<SharedCondition> found;
  Givers givers(times, facts, spans, causes);
  for (auto& [key, waits] : by_address) {
    if (waits.threads.size() < 2) continue;
    if (waits.is_python_lock && overlap(waits.found.spans))
      waits.found.cause = Cause::Lock;
    else if (!givers.are_waiters(waits))
      continue;
    found.push_back(std::move(waits.found));
  }
  return found;
}

}  // namespace tacho::report
