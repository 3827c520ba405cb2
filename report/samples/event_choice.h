// Finds the events that names on the command line mean.
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

namespace tacho::report {

// "cycles" of "cycles:u", "cpu/mem-loads/" of "cpu/mem-loads/P"; without modifiers the whole name.
std::string_view without_modifiers(std::string_view name);

struct EventChoice {
  std::vector<bool> chosen;            // by event
  std::optional<std::string> unknown;  // the first part of the list that is the name of none

  // The names of those that are chosen.
  std::vector<std::string> names(std::span<const std::string> all) const;
};

// `parts`: a list of names as parse_name_list() makes it; an event whose name has commas itself is several
// parts in a row. `names`: of all events. A part that is no event's name is a pattern of a shell ("sched:*"),
// or the name without its modifiers ("cycles" of "cycles:u", "cpu/mem-loads/" of "cpu/mem-loads/P"), its
// subsystem ("sched_switch" of "sched:sched_switch"), both, or its terms ("cpu-clock" of
// "cpu-clock/freq=499/"). A pattern holds no commas: they part the list.
EventChoice choose_events(std::span<const std::string> parts, std::span<const std::string> names);

// Which events of a capture a filter takes. Events that a pipe tells of later, or gives another name, are
// chosen when they are met, each by its name alone: until its description comes, a tracepoint is an "unknown
// tracepoint". One thread asks it.
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

// The one event that is meant in this way. None: no event is, or several are.
std::optional<std::size_t> find_event(std::string_view name, std::span<const std::string> names);

// What to say of a name that find_event() does not find, or of the unknown part of a list: with what is near
// it, what there is, or which events it means. `option`: where the name stood.
Error not_one_event(std::string_view option, std::string_view name, std::span<const std::string> names);

}  // namespace tacho::report
