#include "report/views/why/lock_holders.h"

#include <algorithm>
#include <optional>

namespace tacho::report {

// Spans of holders that are looked at in all waits together. A capture whose maker wants it has as many in
// each wait.
static constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 23;

// Whether both wait for one lock.
bool LockHolders::is_for_the_same(const WallSpan& span, const WallSpan& wait) const {
  const auto pid_of = [&](const WallSpan& one) { return in_.facts[in_.times.rows()[one.row].facts].pid; };
  const Cause cause = in_.causes[wait.row];
  return !is_idle(cause) && in_.causes[span.row] == cause && in_.locks[span.row] == in_.locks[wait.row] &&
         pid_of(span) == pid_of(wait);
}

static std::uint32_t waits_of(const WallSpan& span) { return std::max(span.waits, 1U); }

std::vector<Holder> LockHolders::holders_of(std::span<const WallSpan> waits, double time) {
  sums_.clear();
  double weighted = 0;
  for (const WallSpan& wait : waits) weighted += waits_of(wait) * static_cast<double>(wait.end - wait.begin);
  scale_ = weighted > 0 ? time / weighted : 1;
  for (const WallSpan& wait : waits) add_wait(wait);
  std::vector<Holder> holders;
  for (auto& [name, sum] : sums_) {
    // Waits without events are as those with events, and time on the CPU is that of the samples in all waits.
    if (sum.without_events > 0)
      divide(sum, sum.without_events, sum.waits, {{{Cause::Unknown, "", ""}, sum.without_events}});
    double on_cpu = 0;
    for (const auto& [key, part] : sum.on_cpu) on_cpu += part;
    if (on_cpu > 0) divide(sum, on_cpu, sum.samples, sum.on_cpu);
    Holder made{.comm = name, .time = sum.time};
    if (sum.threads.size() == 1) {
      const WallThread& thread = in_.times.threads()[sum.threads.begin()->first];
      made.comm = thread.comm;
      made.tid = thread.tid;
    }
    for (auto& [key, part] : sum.doings)
      made.doings.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), part});
    std::ranges::stable_sort(made.doings, std::greater(), &Doing::time);
    const auto ends = std::ranges::max_element(sum.ends, {}, [](const auto& one) { return one.second; });
    if (ends != sum.ends.end()) made.ends_in = ends->first;
    made.median_hold = median_of(sum.holds);
    if (!sum.holds.empty()) made.longest_hold = sum.holds.back().duration;
    holders.push_back(std::move(made));
  }
  std::ranges::stable_sort(holders, std::greater(), &Holder::time);
  return holders;
}

// A wait may have two holders: the lock's owner when it began, until that thread waits for the same lock; and
// the thread that woke the waiter, since its own last wait for that lock.
void LockHolders::add_wait(const WallSpan& wait) {
  if (steps_ > kMostSteps) {
    ++left_out_;
    return;
  }
  weight_ = scale_ * waits_of(wait);
  const WaitFacts& facts = in_.facts[in_.times.rows()[wait.row].facts];
  const auto owner = facts.holder_tid == 0 ? std::nullopt : in_.spans.thread_at(facts.holder_tid, wait.begin);
  std::optional<std::uint32_t> waker;
  if (!facts.waker.is_interrupt && facts.waker.tid != 0)
    waker = in_.spans.thread_at(facts.waker.tid, wait.end);
  const std::string_view other =
      facts.holder.empty() && !facts.waker.is_interrupt ? facts.waker.comm : facts.holder;
  if (!owner && !waker && !other.empty()) {  // a thread that was not recorded
    Sum& sum = sums_[in_.families.shown_name(other)];
    const auto time = weight_ * static_cast<double>(wait.end - wait.begin);
    sum.time += time;
    sum.doings[{Cause::Unknown, "", ""}] += time;
    return;
  }
  std::uint64_t until = wait.end, from = wait.begin;
  if (owner)
    for (const WallSpan& span : in_.spans.between(*owner, wait.begin, wait.end))
      if (is_for_the_same(span, wait)) {
        until = std::max(span.begin, wait.begin);
        break;
      }
  if (waker)
    for (const WallSpan& span : in_.spans.between(*waker, wait.begin, wait.end))
      if (is_for_the_same(span, wait)) from = std::clamp(span.end, wait.begin, wait.end);
  // Unless the owner waited for it in between, it had the lock all the time.
  const bool is_one = owner && waker && *owner == *waker && until == wait.end;
  if (owner && until > wait.begin) {
    Sum& sum = add_part(*owner, wait.begin, until, is_one ? &facts.waker : nullptr);
    if (is_one) sum.holds.push_back({until - wait.begin, waits_of(wait)});
  }
  if (owner) from = std::max(from, until);
  if (waker && wait.end > from) {
    Sum& sum = add_part(*waker, from, wait.end, &facts.waker);
    sum.ends[function_of(facts.waker)] += weight_ * static_cast<double>(wait.end - from);
    sum.holds.push_back({wait.end - from, waits_of(wait)});
  }
}

LockHolders::Key LockHolders::doing_in(const WallSpan& span) {
  const WallRow& row = in_.times.rows()[span.row];
  const WaitFacts& facts = in_.facts[row.facts];
  const Cause cause = in_.causes[span.row];
  const auto frames = row.stack == nullptr ? std::span<const NamedFrame>() : in_.stacks.frames(*row.stack);
  std::string subject;
  if (cause == Cause::Lock) {
    const auto name = in_.names.find({facts.pid, in_.locks[span.row]});
    if (name != in_.names.end()) subject = name->second;
  } else if (cause == Cause::Runnable) {
    subject = facts.runner;
  } else {
    subject = facts.name;
  }
  return {cause, std::string(own_function(frames)), subject};
}

void LockHolders::divide(Sum& sum, double time, const std::map<Key, double>& parts,
                         const std::map<Key, double>& otherwise) {
  const std::map<Key, double>& known = parts.empty() ? otherwise : parts;
  double all = 0;
  for (const auto& [key, part] : known) all += part;
  for (const auto& [key, part] : known) sum.doings[key] += time * part / all;
}

// Its function that ended the wait; empty: not known.
std::string_view LockHolders::function_of(const Waker& waker) {
  if (waker.stack == nullptr) return {};
  return own_function(in_.stacks.frames(waker.stack->frames.first(waker.frames)));
}

LockHolders::Sum& LockHolders::add_part(std::uint32_t thread, std::uint64_t begin, std::uint64_t end,
                                        const Waker* at_end) {
  Sum& sum = sums_[in_.families.shown_name(in_.times.threads()[thread].comm)];
  double off = 0;
  bool has_samples = false;
  const auto take = [&](double time) {
    sum.time += weight_ * time;
    sum.threads[thread] += weight_ * time;
    return weight_ * time;
  };
  const auto spans = in_.spans.between(thread, begin, end);
  steps_ += spans.size();
  for (const WallSpan& span : spans) {
    if (span.begin == span.end) {
      sum.samples[doing_in(span)] += weight_;
      has_samples = true;
      continue;
    }
    const std::uint64_t first = std::max(begin, span.begin), last = std::min(end, span.end);
    if (last <= first) continue;
    off += static_cast<double>(last - first);
    const double time = take(static_cast<double>(last - first));
    if (span.waits == 0) {
      sum.without_events += time;
    } else {
      const Key key = doing_in(span);
      sum.waits[key] += time;
      sum.doings[key] += time;
    }
  }
  const double on = static_cast<double>(end - begin) - off;
  if (on <= 0) return sum;
  // Without a sample: the function that gave the lock back. A clock of 99 Hz would have seen much more time.
  constexpr double kSeen = 3e7;  // ns
  Key key{Cause::Cpu, "", ""};
  if (at_end != nullptr) std::get<1>(key) = function_of(*at_end);
  if (has_samples || on < kSeen)
    sum.on_cpu[std::move(key)] += take(on);
  else
    sum.doings[{Cause::Unknown, std::get<1>(key), ""}] += take(on);
  return sum;
}

}  // namespace tacho::report
