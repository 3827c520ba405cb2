// Events that only count: open in the kernel, and their counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "format/base/file.h"
#include "format/base/result.h"
#include "record/events/event_request.h"
#include "record/host/host.h"
#include "record/plan/plan.h"
#include "record/stat/stat_options.h"

namespace tacho::record {

// A count as the kernel has it, and the times in which the event was enabled and had a counter.
struct Count {
  std::uint64_t value = 0, enabled_ns = 0, running_ns = 0;

  Count& operator+=(const Count& more);
  Count operator-(const Count& before) const;
};
// The count, scaled up if other events had the counter for a part of the time.
std::uint64_t scaled(const Count& count);

// An event as it is counted.
struct CountedEvent {
  PlannedEvent planned;
  std::string cgroup;                 // its name; empty: none
  std::size_t group = 0, option = 0;  // as in EventRequest
  std::string unit;                   // of the PMU; empty: a number
  double scale = 1;                   // of the PMU
  bool is_supported = true;           // false: the kernel or machine does not have it
};

class Counters {
 public:
  // Opens the events for the target; they count from start() on, or from the exec of `command` (its process;
  // 0: none). `tasks`: the threads of the target, if it has any.
  static Result<Counters> open(const std::vector<EventRequest>& requests, const StatOptions& options,
                               const std::vector<int>& tasks, int command, const Host& host);
  Result<> start() const;
  void stop() const;

  const std::vector<CountedEvent>& events() const { return events_; }
  const std::vector<std::string>& notes() const { return notes_; }

  // The counts so far, not scaled, in the order of events(), threads and CPUs. Each call has the same ones.
  struct Reading {
    std::size_t event = 0;
    int cpu = -1, thread = -1;
    Count count;
  };
  std::vector<Reading> read_counters() const;

 private:
  struct Counter {
    std::size_t event = 0;
    int cpu = -1, thread = -1;
    format::Fd fd;
  };
  Result<> open_event_everywhere(std::size_t event, const std::vector<int>& cpus,
                                 const std::vector<int>& tasks, const Host& host);
  Result<int> leader_of(std::size_t event, int cpu, int thread) const;

  std::vector<format::Fd> cgroups_;
  std::vector<CountedEvent> events_;
  std::vector<Counter> counters_;
  std::vector<std::string> notes_;
};

}  // namespace tacho::record
