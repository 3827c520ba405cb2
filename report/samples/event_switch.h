// --switch-on and --switch-off: samples are shown between a sample of one event and a sample of another.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/base/result.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

// Empty texts let everything through.
struct SwitchOptions {
  std::string on, off;          // names of events
  bool shows_switches = false;  // samples of these events too
  bool is_asked_for() const { return !on.empty() || !off.empty(); }
};

class EventSwitch {
 public:
  explicit EventSwitch(SwitchOptions options) : options_(std::move(options)) {}

  // Once, before the first sample: the names of the capture's events, by number. An error when an event to
  // switch at is not among them.
  Result<> find_events(const std::vector<std::string>& names);
  // Of each sample, in their order.
  bool accepts(const ResolvedSample& sample) { return is_on(sample.event_index); }

 private:
  bool is_on(std::size_t event);

  SwitchOptions options_;
  std::optional<std::size_t> on_, off_;  // events
  bool is_discarding_ = false;
};

}  // namespace tacho::report
