#include "report/views/why/shared_conditions.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace tacho::report {
namespace {

// A condition of the C library has two futexes, which are the halves of such a word.
constexpr std::uint64_t kWord = 8;
// Of the time of waits whose waker is known: waits that threads ended that wait for it too.
constexpr double kMostByWaiters = 0.8;
// Of the time of all waits: the waker is known.
constexpr double kMostKnown = 0.5;

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

bool are_given_by_waiters(const AtAddress& waits, const WallTimes& times, const WaitFactsTable& facts,
                          const ThreadSpans& spans) {
  double all = 0, known = 0, by_waiters = 0;
  for (const WallSpan& span : waits.found.spans) {
    const WallRow& row = times.rows()[span.row];
    const Waker& waker = facts[row.facts].waker;
    const auto time = std::max(span.waits, 1U) * static_cast<double>(span.end - span.begin);
    all += time;
    if (waker.comm.empty()) continue;
    known += time;
    if (waker.is_interrupt || waker.tid == 0) continue;
    const auto by = spans.thread_at(waker.tid, span.end);
    if (by && *by != row.thread && waits.threads.contains(*by)) by_waiters += time;
  }
  return known > 0 && known >= kMostKnown * all && by_waiters >= kMostByWaiters * known;
}

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
  for (auto& [key, waits] : by_address) {
    if (waits.threads.size() < 2) continue;
    if (waits.is_python_lock && overlap(waits.found.spans))
      waits.found.cause = Cause::Lock;
    else if (!are_given_by_waiters(waits, times, facts, spans))
      continue;
    found.push_back(std::move(waits.found));
  }
  return found;
}

}  // namespace tacho::report
