// Findings: where the time of threads went, by cause, each with its evidence. Waits for work are no findings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/profile/slow_intervals.h"
#include "report/profile/wall_times.h"
#include "report/views/why/causes.h"
#include "report/views/why/lock_holders.h"
#include "report/views/why/wait_facts.h"

namespace tacho::report {

struct NamedTime {
  std::string name;
  double time = 0;  // ns
};

struct TimeFinding {
  Cause cause = Cause::Other;
  double time = 0;                        // ns, of all threads
  std::uint64_t count = 0;                // waits; on the CPU samples
  std::uint64_t median = 0, longest = 0;  // ns of a wait; 0 on the CPU
  std::string function;                   // of the program; empty: not known
  std::string subject;                    // lock, file, peer, or the process that had the CPU
  std::string disk;                       // of the file; empty: not known
  std::string call;                       // the system call; empty: none
  std::string code;  // on the CPU: the function that has most of its samples; empty: no code of a file
  std::vector<std::string> stack;  // root first: the heaviest call chain
  // On the CPU: the callees that share the time; without a CPU: the threads that had it.
  std::vector<NamedTime> parts;
  // Without a CPU: the functions for which the first of `parts` had it; its time, as samples divide that.
  std::vector<NamedTime> runner_functions;
  std::vector<NamedTime> threads;   // by name, the longest time first
  std::vector<Holder> holders;      // of a lock or a condition, the longest time first
  std::uint64_t began_before = 0;   // waits that had begun before the recording
  std::uint64_t unfinished = 0;     // waits that had not ended with it
  std::uint32_t pid = 0;            // of a lock; 0: none
  double life = 0;                  // ns of the threads that have it
  std::vector<std::uint32_t> rows;  // indices of its rows of WallTimes; with --of its spans instead
  std::vector<WallSpan> spans;      // with --of: the parts in slow operations
  // ns of one operation, with --of: of the slow ones, and of the others.
  double of_slow = 0, of_others = 0;
};

// Waits for work. A condition and a pipe may also bring the result of another thread: who ends the waits, and
// what these threads do meanwhile, shows which it is.
struct IdleTime {
  Cause cause = Cause::IdlePoll;
  std::string function, call;
  std::string threads;                    // "worker-* (4 threads)"
  double time = 0;                        // ns
  std::uint64_t count = 0;                // waits
  std::uint64_t median = 0, longest = 0;  // ns of a wait
  std::vector<Holder> ended_by;           // of a condition and a pipe, the longest time first
  std::vector<NamedTime> peers;           // of epoll: those whose answers ended it, the longest time first
  double life = 0;                        // ns of the threads that have it
  std::vector<std::uint32_t> rows;        // indices in WallTimes::rows()
};

// The operations of --of.
struct Operations {
  std::string name;  // "call.duration_ns", safe to print
  struct Side {
    std::uint64_t count = 0, median = 0, least = 0;  // ns
  };
  Side slow, others;
};

struct Answer {
  double wall = 0;     // ns: the lives of all threads
  double idle = 0;     // of it: waits for work
  double unknown = 0;  // of it: no event shows what threads did
  double rest = 0;     // of it: causes that are too small to be findings
  double span = 0;     // ns of the recording
  std::uint64_t threads = 0, processes = 0, forks = 0;
  std::uint64_t without_holders = 0;  // waits for locks: too many to look for the holders of all
  // The longest time first. With `operations`: what slow ones have more of, the largest difference first.
  std::vector<TimeFinding> findings;
  std::optional<Operations> operations;
  std::vector<IdleTime> waits_for_work;
};

// After WallTimes::finish(). `slow`: the operations of --of; null: all time counts.
Answer find_causes(Session& session, const WallTimes& times, const WaitFactsTable& facts,
                   SlowIntervals* slow);

}  // namespace tacho::report
