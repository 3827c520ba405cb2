// Which samples a view sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "format/container/environment.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/sample_condition.h"

namespace tacho::report {

// Empty lists and texts let everything through. A session asks in this order, so that what is left out costs
// little: what a sample's first fields tell, before it is put in order; its thread's name, before its stack
// is looked at; and the names of its own place (NameFilter), before a view sees it.
struct Filter {
  struct TimeRange {
    std::uint64_t first = 0, last = ~std::uint64_t{0};  // ns, both inside
  };
  std::vector<std::uint32_t> pids, tids, cpus;
  std::vector<TimeRange> times;
  std::string time_text;            // ranges as parse_times() reads them: a session puts them into `times`
  std::vector<std::string> events;  // parts of a list (report/samples/event_choice.h)
  std::vector<std::string> comms;
  std::vector<std::string> dsos;              // paths, or their last parts
  std::vector<std::string> symbols;           // names, or addresses in hexadecimal
  std::optional<std::uint64_t> symbol_range;  // bytes behind each of these addresses
  std::string symbol_part;                    // a part of the name
  std::shared_ptr<SampleCondition>
      condition;  // asked behind the thread's name, before the stack is looked at

  // Whether some samples are refused by accepts_start() or by their events.
  bool looks_at_start() const;
  // By the fields that stand first in a sample: pid, tid, time and processor.
  bool accepts_start(const format::Sample& sample) const;
  bool accepts_comm(std::string_view comm) const;
  bool accepts_cpu(std::uint32_t cpu) const;
  bool accepts_time(std::uint64_t time) const;
  bool looks_at_names() const { return !dsos.empty() || !symbols.empty() || !symbol_part.empty(); }
};

// The symbols of a filter that read as addresses, as perf takes them: with and without 0x.
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
// "1.5,2.25" (seconds; either side may be empty), several with a blank between them, ascending; or parts of
// the capture: "50%" (the first half), "0%-50%", "10%/2", several of one kind by commas. Parts need the first
// and the last time, which a closed capture's header holds.
Result<std::vector<Filter::TimeRange>> parse_times(std::string_view text,
                                                   const format::Environment& environment);

// Which samples a run delivers, and how much of their call chains.
struct SampleOptions {
  Filter filter;
  std::size_t max_stack = 127;  // frames of a call chain
  bool wants_stacks = true;     // false: samples come without their call chains
  // Whether a payload's fields tagged ROLE("stack") are the call chain, in place of what the kernel recorded.
  bool wants_payload_stacks = true;
  bool leaves_out_guests = false;  // samples of guests, whose cpumode is 4 or 5
  bool keeps_callers = false;  // of a recorded chain with more frames, the outermost: perf with caller first
  bool condition_asks_for_names = false;  // the filter's, once it is bound
  bool keeps_addresses = false;  // processes that loaded a module elsewhere have places of their own in it
};

}  // namespace tacho::report
