#include "report/samples/event_switch.h"

#include <string_view>

#include "report/samples/event_choice.h"

namespace tacho::report {
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
