// Who held a lock, or ended another wait, while others waited, and what that thread did meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "report/views/why/causes.h"
#include "report/views/why/thread_spans.h"
#include "report/views/why/wait_facts.h"

namespace tacho::report {

// What a thread did meanwhile, in which function.
struct Doing {
  Cause cause = Cause::Cpu;
  std::string function;  // empty: not known
  std::string subject;   // the lock, file or peer for which it waited; empty: none
  double time = 0;       // ns
};

// The threads of one name that held a lock while others waited for it, or that ended their waits.
struct Holder {
  std::string comm;       // "worker-*" are several
  std::uint32_t tid = 0;  // 0: several threads
  double time = 0;        // ns of others' waits
  // ns for which it had the lock while another thread waited, each time until it gave it back; 0: not known.
  std::uint64_t median_hold = 0, longest_hold = 0;
  std::string ends_in;        // the function in which it ended most of them; empty: not known
  std::vector<Doing> doings;  // the longest first; they add up to `time`
};

class LockHolders {
 public:
  using LockNames = std::map<std::pair<std::uint32_t, std::uint64_t>, std::string>;  // by pid and address
  struct Inputs {
    const WallTimes& times;
    const WaitFactsTable& facts;
    const ThreadSpans& spans;
    const std::vector<Cause>& causes;         // by row
    const std::vector<std::uint64_t>& locks;  // by row
    NamedChains& stacks;
    const LockNames& names;
    const NameFamilies& families;
  };
  // All of it must outlive this.
  explicit LockHolders(const Inputs& inputs) : in_(inputs) {}

  // The holders of the locks in these waits, or the threads that ended waits for anything else; the longest
  // time first. `time`: ns of these waits and of those for which they stand; times of holders are parts of
  // it.
  std::vector<Holder> holders_of(std::span<const WallSpan> waits, double time);
  // Waits without holders, as looking for these would take too long.
  std::uint64_t left_out() const { return left_out_; }

 private:
  using Key = std::tuple<Cause, std::string, std::string>;  // of a Doing
  struct Sum {
    double time = 0;
    std::map<std::uint32_t, double> threads;  // by number; kNobody: not recorded
    std::map<Key, double> doings;
    // Of these its waits with events; ns of waits without events, which a rate limit left out.
    std::map<Key, double> waits;
    double without_events = 0;
    // Samples of the clock meanwhile; and ns on the CPU, with what is known without a sample.
    std::map<Key, double> samples, on_cpu;
    std::map<std::string_view, double> ends;  // by function
    std::vector<WaitTime> holds;
  };
  bool is_for_the_same(const WallSpan& span, const WallSpan& wait) const;
  void add_wait(const WallSpan& wait);
  // What the thread did in a part of the wait. `at_end`: the stack with which it ended the wait; may be null.
  Sum& add_part(std::uint32_t thread, std::uint64_t begin, std::uint64_t end, const Waker* at_end);
  // `parts`: in which proportion; none: `otherwise`.
  static void divide(Sum& sum, double time, const std::map<Key, double>& parts,
                     const std::map<Key, double>& otherwise);
  Key doing_in(const WallSpan& span);
  std::string_view function_of(const Waker& waker);

  Inputs in_;
  std::map<std::string, Sum> sums_;  // by family of names
  double scale_ = 1;   // `time` of holders_of(), divided by the weighted time of the waits that have events
  double weight_ = 1;  // of the wait that is added: the number of waits that it stands for, times scale_
  std::uint64_t steps_ = 0, left_out_ = 0;
};

}  // namespace tacho::report
