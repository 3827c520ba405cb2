// Which samples a view sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "format/container/environment.h"
#include "format/container/features.h"
#include "format/records/event_set.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

class Resolver;

// The condition of --where. It is an interface, since expressions are made by report/query, above this
// folder. Used by one session, and after bind() by one thread.
class SampleCondition {
 public:
  virtual ~SampleCondition() = default;
  // Call it when the events are known, before the first sample. `events` and `features` must outlive it.
  // Returns a usage error if the expression names an unknown field.
  virtual Result<> bind(const format::EventSet& events, const format::Features& features) = 0;
  // After bind(): the same condition for another thread, bound to the same events.
  virtual std::unique_ptr<SampleCondition> fork() const = 0;
  // Valid after bind().
  virtual bool asks_for_names() const { return false; }
  // After the run: a note for the user about its results, or "".
  virtual std::string note() const { return {}; }
  // The sample may have no location and no stack yet. `names`: null if asks_for_names() is false.
  virtual bool holds(const ResolvedSample& sample, Resolver* names) = 0;
};

// Empty members accept everything. A session applies the cheap tests first: on a sample's fixed fields,
// before it is sorted by time; on its thread's name, before its call chain is read; on its symbol and module,
// before the view gets it.
struct Filter {
  struct TimeRange {
    std::uint64_t first = 0, last = ~std::uint64_t{0};  // ns, inclusive
  };
  std::vector<std::uint32_t> pids, tids, cpus;
  std::vector<TimeRange> times;
  std::string time_text;            // for parse_times(); a session puts the result into `times`
  std::vector<std::string> events;  // as in event_choice.h
  std::vector<std::string> comms;
  std::vector<std::string> dsos;               // paths, or their last parts
  std::vector<std::string> symbols;            // names, or addresses in hexadecimal
  std::optional<std::uint64_t> symbol_range;   // bytes after each hexadecimal address in `symbols`
  std::string symbol_part;                     // a part of the name
  std::shared_ptr<SampleCondition> condition;  // evaluated after the test of the thread's name

  // Whether accepts_start() or `events` may reject a sample.
  bool looks_at_start() const;
  // By pid, tid, time and CPU, which come first in a sample.
  bool accepts_start(const format::Sample& sample) const;
  bool accepts_comm(std::string_view comm) const;
  bool accepts_cpu(std::uint32_t cpu) const;
  bool accepts_time(std::uint64_t time) const;
  bool looks_at_names() const { return !dsos.empty() || !symbols.empty() || !symbol_part.empty(); }
};

// The entries of Filter::symbols that are hexadecimal addresses (0x is optional, as in perf).
class WantedAddresses {
 public:
  explicit WantedAddresses(const Filter& filter);
  bool empty() const { return addresses_.empty(); }
  bool has(std::uint64_t address) const;

 private:
  std::vector<std::uint64_t> addresses_;
  std::uint64_t range_ = 1;  // bytes
};

// "0,3-5" -> 0 3 4 5, ascending. `option` names it in messages.
Result<std::vector<std::uint32_t>> parse_number_list(std::string_view option, std::string_view text);
// "dd,cat"
std::vector<std::string> parse_name_list(std::string_view text);
// perf's --time: "1.5,2.25" in seconds (either side may be empty), several ascending ones separated by
// blanks; or shares of the capture: "50%" (the first half), "0%-50%", "10%/2" (the second tenth), several
// separated by commas. Shares need the first and last sample time (HEADER_SAMPLE_TIME), which a pipe does not
// have.
Result<std::vector<Filter::TimeRange>> parse_times(std::string_view text,
                                                   const format::Environment& environment);

inline constexpr std::size_t kDeepestStack = std::size_t{1} << 16;  // frames: no record has room for as many
inline constexpr std::size_t kDeepestOfPerf = 127;  // the default of perf report and perf script

// Which samples a run gives to the view, and how much of their call chains.
struct SampleOptions {
  Filter filter;
  std::size_t max_stack = kDeepestStack;  // frames of a call chain
  bool wants_stacks = true;               // false: call chains are not read
  // Whether payload fields tagged ROLE("stack") replace the call chain that the kernel recorded.
  bool wants_payload_stacks = true;
  bool leaves_out_guests = false;  // samples of virtual machines, whose cpumode is 4 or 5
  bool keeps_callers = false;      // truncate long chains at the leaf, not at the root (perf: -g caller)
  bool keeps_addresses = false;    // one location for each load address of a module
  bool keeps_hooks = false;        // as perf: stacks begin in the hook that took them (hook_functions.h)

  // The most frames that are unwound from a stack copy: a hostile copy may never end.
  std::size_t max_unwound() const { return max_stack == kDeepestStack ? 1024 : max_stack; }
};

}  // namespace tacho::report
