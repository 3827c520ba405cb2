#include "report/samples/event_choice.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "cli/nearest.h"
#include "report/samples/filter.h"

namespace tacho::report {

std::string_view without_modifiers(std::string_view name) {
  constexpr std::string_view kModifiers = "ukhGHIpPSDWebR";
  const std::size_t last = name.find_last_not_of(kModifiers);
  if (last == std::string_view::npos || last + 1 == name.size()) return name;
  if (name[last] == ':') return name.substr(0, last);
  const bool is_pmu = name[last] == '/' && name.find('/') != last;
  return is_pmu ? name.substr(0, last + 1) : name;
}

namespace {

// "sched_switch" of "sched:sched_switch"; empty if the name has no subsystem.
std::string_view without_subsystem(std::string_view name) {
  const std::size_t colon = name.find(':');
  const bool has_subsystem = colon != std::string_view::npos && without_modifiers(name).size() > colon;
  return has_subsystem ? name.substr(colon + 1) : std::string_view();
}

// "cpu-clock" of "cpu-clock/freq=499/"; empty if the name has no terms.
std::string_view without_terms(std::string_view name) {
  const std::size_t slash = name.find('/');
  const bool has_terms =
      slash != std::string_view::npos && slash > 0 && name[slash - 1] != ':';  // "p:/lib/libc.so" is a path
  return has_terms ? name.substr(0, slash) : std::string_view();
}

// Short forms of a name.
std::array<std::string_view, 4> short_names(std::string_view name) {
  return {without_modifiers(name), without_subsystem(name), without_subsystem(without_modifiers(name)),
          without_terms(name)};
}

bool is_pattern(std::string_view part) { return part.find_first_of("*?[") != std::string_view::npos; }

bool fits(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

// The number of leading parts that, joined by commas, are `name`; 0 if none do.
std::size_t count_parts_of_name(std::string_view name, std::span<const std::string> parts) {
  if (name.empty()) return 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!name.starts_with(parts[i])) return 0;
    name.remove_prefix(parts[i].size());
    if (name.empty()) return i + 1;
    if (name.front() != ',') return 0;
    name.remove_prefix(1);
  }
  return 0;
}

}  // namespace

std::vector<std::string> EventChoice::names(std::span<const std::string> all) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i]) names.push_back(all[i]);
  return names;
}

std::vector<std::string> event_names(const format::EventSet& events) {
  std::vector<std::string> names;
  for (const format::Event& event : events) names.push_back(event.name);
  return names;
}

EventChoice choose_events(std::span<const std::string> parts, std::span<const std::string> names) {
  EventChoice choice{std::vector<bool>(names.size()), {}};
  std::size_t known = 0;  // index of the first part that no event has matched yet
  // Marks events that match parts from `first` on: taken(event) is the number of these parts.
  const auto choose = [&](std::size_t first, const auto& taken) {
    bool has_match = false;
    for (std::size_t event = 0; event < names.size(); ++event) {
      const std::size_t count = taken(event);
      if (count == 0) continue;
      choice.chosen[event] = has_match = true;
      known = std::max(known, first + count);
    }
    return has_match;
  };
  for (std::size_t first = 0; first < parts.size(); ++first) {
    const auto rest = parts.subspan(first);
    if (choose(first, [&](std::size_t event) { return count_parts_of_name(names[event], rest); })) continue;
    if (known > first) continue;  // inside a name with commas
    const bool is_matched = choose(first, [&](std::size_t event) -> std::size_t {
      if (is_pattern(parts[first])) return fits(parts[first], names[event]) ? 1 : 0;
      std::size_t count = 0;
      for (const std::string_view name : short_names(names[event]))
        count = std::max(count, count_parts_of_name(name, rest));
      return count;
    });
    if (!is_matched && !choice.unknown) choice.unknown = parts[first];
  }
  return choice;
}

bool EventFilter::takes(const format::EventSet& events, std::size_t event) {
  if (parts_.empty()) return true;
  if (known_.size() < events.size()) learn(events);
  Known& known = known_[event];
  if (known.name != events[event].name) {
    known.name = events[event].name;
    known.is_taken = choose_events(parts_, std::span(&known.name, 1)).chosen[0];
  }
  return known.is_taken;
}

void EventFilter::learn(const format::EventSet& events) {
  std::vector<std::string> names;
  for (std::size_t i = known_.size(); i < events.size(); ++i) names.push_back(events[i].name);
  const EventChoice choice = choose_events(parts_, names);
  for (std::size_t i = 0; i < names.size(); ++i) known_.push_back({std::move(names[i]), choice.chosen[i]});
}

std::optional<std::size_t> find_event(std::string_view name, std::span<const std::string> names) {
  const auto exact = std::ranges::find(names, name);
  if (exact != names.end()) return static_cast<std::size_t>(exact - names.begin());
  const std::string wanted(name);
  const auto matches_name = [&](const std::string& one) {
    if (is_pattern(wanted)) return fits(wanted, one);
    const auto known = short_names(one);
    return std::ranges::find(known, wanted) != known.end();
  };
  const auto first = std::ranges::find_if(names, matches_name);
  if (wanted.empty() || first == names.end() ||
      std::find_if(first + 1, names.end(), matches_name) != names.end())
    return std::nullopt;
  return static_cast<std::size_t>(first - names.begin());
}

Error not_one_event(std::string_view option, std::string_view name, std::span<const std::string> all) {
  // perf's dummy event (for sideband records) has no samples, so it is not suggested.
  std::vector<std::string> names;
  std::ranges::copy_if(all, std::back_inserter(names),
                       [](const std::string& one) { return without_modifiers(one) != "dummy"; });
  const EventChoice choice = choose_events(parse_name_list(name), names);
  const auto meant = choice.names(names);
  const std::string prefix = std::string(option) + ": ", quoted = "'" + cli::shortened(name) + "'";
  if (meant.size() > 1 && !choice.unknown)
    return use_error(prefix + quoted + " means " + std::to_string(meant.size()) +
                     " events: " + cli::some_of(meant) + "; name one of them");
  std::vector<std::string> short_names;
  for (const std::string& one : names) short_names.emplace_back(without_modifiers(one));
  const std::string guess = cli::suggestion(name, short_names);
  return use_error(prefix + "there is no event " + quoted +
                   (guess.empty() ? cli::suggestion_or_all(name, names) : guess));
}

namespace {

Result<std::optional<std::size_t>> find_event(std::string_view option, const std::string& wanted,
                                              const std::vector<std::string>& names) {
  if (wanted.empty()) return std::optional<std::size_t>();
  const auto found = report::find_event(wanted, names);
  if (!found) return not_one_event(option, wanted, names);
  return found;
}

}  // namespace

Result<> EventSwitch::find_events(const std::vector<std::string>& names) {
  auto on = find_event("--switch-on", options_.on, names);
  if (!on) return std::move(on.error());
  auto off = find_event("--switch-off", options_.off, names);
  if (!off) return std::move(off.error());
  on_ = *on;
  off_ = *off;
  is_discarding_ = on_.has_value();
  return Done{};
}

bool EventSwitch::accepts(const ResolvedSample& sample) {
  const std::size_t event = sample.event_index;
  if (on_ && is_discarding_) {
    if (event != *on_) return false;
    is_discarding_ = false;
    return options_.shows_switches;
  }
  if (off_ && !is_discarding_ && event == *off_) {
    is_discarding_ = true;
    return options_.shows_switches;
  }
  return true;  // as in perf: with --switch-off alone, only the first of its events is left out
}

}  // namespace tacho::report
