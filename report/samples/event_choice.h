// Which events of a capture are meant by names that somebody typed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tacho::report {

struct EventChoice {
  std::vector<bool> chosen;            // by event
  std::optional<std::string> unknown;  // the first part of the list that is the name of none

  // The names of those that are chosen.
  std::vector<std::string> names(std::span<const std::string> all) const;
};

// `parts`: a list of names as parse_name_list() makes it; an event whose name has commas itself is several
// parts in a row. `names`: of all events. A part that is no event's name is a pattern of a shell ("sched:*"),
// or the name without its modifiers ("cycles" of "cycles:u", "cpu/mem-loads/" of "cpu/mem-loads/P") or its
// subsystem ("sched_switch" of "sched:sched_switch").
EventChoice choose_events(std::span<const std::string> parts, std::span<const std::string> names);

// The one event that is meant in this way. None: no event is, or several are.
std::optional<std::size_t> find_event(std::string_view name, std::span<const std::string> names);

// For the end of a message about a name that means no event, or several.
std::string event_suggestion(std::string_view name, std::span<const std::string> names);

}  // namespace tacho::report
