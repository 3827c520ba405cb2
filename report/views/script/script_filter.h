// Which samples `script` prints, by what came before them (--switch-on).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/result.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

// Empty texts let everything through.
struct ScriptFilterOptions {
  std::string switch_on, switch_off;  // events
  bool shows_switches = false;
};

class ScriptFilter {
 public:
  explicit ScriptFilter(ScriptFilterOptions options) : options_(std::move(options)) {}

  // An error when an event to switch at is not among these.
  Result<> find_events(const std::vector<std::string>& names);
  bool accepts(const ResolvedSample& sample) { return is_on(sample.event_index); }

 private:
  bool is_on(std::size_t event);

  ScriptFilterOptions options_;
  std::optional<std::size_t> on_, off_;  // events
  bool is_discarding_ = false;
};

}  // namespace tacho::report
