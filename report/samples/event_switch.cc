#include "report/samples/event_switch.h"

#include <algorithm>
#include <string_view>

namespace tacho::report {
namespace {

Result<std::optional<std::size_t>> find_event(std::string_view option, const std::string& wanted,
                                              const std::vector<std::string>& names) {
  if (wanted.empty()) return std::optional<std::size_t>();
  const auto row = std::ranges::find(names, wanted);
  if (row == names.end())
    return use_error(std::string(option) + ": there is no event '" + wanted + "'; tacho evlist lists them");
  return std::optional<std::size_t>(row - names.begin());
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

bool EventSwitch::is_on(std::size_t event) {
  if (on_ && is_discarding_) {
    if (event != *on_) return false;
    is_discarding_ = false;
    return options_.shows_switches;
  }
  if (off_ && !is_discarding_ && event == *off_) {
    is_discarding_ = true;
    return options_.shows_switches;
  }
  return true;  // as perf: with an event to turn off at alone, only the first of these is left out
}

}  // namespace tacho::report
