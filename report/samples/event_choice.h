// Finds a capture's events by the names given on the command line.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "format/base/result.h"
#include "format/records/event_set.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

// "cycles" of "cycles:u", "cpu/mem-loads/" of "cpu/mem-loads/P"; without modifiers the whole name.
std::string_view without_modifiers(std::string_view name);

// The names of all events, by index.
std::vector<std::string> event_names(const format::EventSet& events);

struct EventChoice {
  std::vector<bool> chosen;            // by event
  std::optional<std::string> unknown;  // the first part of the list that matches no event

  // The names of the chosen events.
  std::vector<std::string> names(std::span<const std::string> all) const;
};

// `parts`: a list of names from parse_name_list(); an event name with commas is several successive parts.
// `names`: of all events. A part matches an event by
//   its name
//   a shell pattern without commas ("sched:*")
//   its name without modifiers ("cycles" of "cycles:u", "cpu/mem-loads/" of "cpu/mem-loads/P")
//   its name without subsystem ("sched_switch" of "sched:sched_switch"), or without both
//   its name without terms ("cpu-clock" of "cpu-clock/freq=499/")
EventChoice choose_events(std::span<const std::string> parts, std::span<const std::string> names);

// Which events of a capture a filter takes. A pipe may add events later, or name them later (until then a
// tracepoint is an "unknown tracepoint"): an event is matched again when its name has changed. Belongs to one
// thread.
class EventFilter {
 public:
  // Parts of a list, as above; empty: all events.
  explicit EventFilter(std::vector<std::string> parts = {}) : parts_(std::move(parts)) {}
  bool takes(const format::EventSet& events, std::size_t event);

 private:
  void learn(const format::EventSet& events);
  struct Known {
    std::string name;
    bool is_taken = false;
  };
  std::vector<std::string> parts_;
  std::vector<Known> known_;  // by event
};

// The index of the single event that `name` matches by these rules; nullopt if it matches none or several.
std::optional<std::size_t> find_event(std::string_view name, std::span<const std::string> names);

// The error for a name that find_event() does not find, or for EventChoice::unknown. Its text suggests
// similar names, lists all names, or lists the events that match. `option`: the command-line option that
// named it, for the message.
Error not_one_event(std::string_view option, std::string_view name, std::span<const std::string> names);

// --switch-on and --switch-off: Samples are shown from a sample of the event --switch-on until a sample of
// the event --switch-off.

// An empty name: the option was not given.
struct SwitchOptions {
  std::string on, off;          // names of events
  bool shows_switches = false;  // show the samples that switch, too (perf: --show-on-off-events)
  bool is_asked_for() const { return !on.empty() || !off.empty(); }
};

class EventSwitch {
 public:
  explicit EventSwitch(SwitchOptions options) : options_(std::move(options)) {}

  // Call it once, before the first sample. `names`: of the capture's events. Returns an error if one of the
  // two events is not in the capture.
  Result<> find_events(const std::vector<std::string>& names);
  // Call it for each sample, in time order.
  bool accepts(const ResolvedSample& sample);

 private:
  SwitchOptions options_;
  std::optional<std::size_t> on_, off_;  // events
  bool is_discarding_ = false;
};

}  // namespace tacho::report
