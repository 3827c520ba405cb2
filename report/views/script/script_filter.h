// Which samples `script` prints, by what only names tell (-S, --dsos) and by what came before (--switch-on).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/samples/session.h"

namespace tacho::report {

// Empty lists and texts let everything through.
struct ScriptFilterOptions {
  std::vector<std::string> symbols;    // names, or addresses in hexadecimal
  std::optional<std::uint64_t> range;  // bytes behind each of these addresses
  std::vector<std::string> modules;    // paths, or their last parts
  std::string switch_on, switch_off;   // events
  bool shows_switches = false;
};

class ScriptFilter {
 public:
  explicit ScriptFilter(ScriptFilterOptions options);

  // An error when an event to switch at is not among these.
  Result<> find_events(const std::vector<std::string>& names);
  bool accepts(Session& session, const ResolvedSample& sample);

 private:
  bool has_wanted_symbol(const ResolvedSample& sample, const symbolize::Frame& frame) const;
  bool has_wanted_module(const symbolize::Frame& frame) const;
  bool is_on(std::size_t event);

  ScriptFilterOptions options_;
  std::vector<std::uint64_t> addresses_;
  std::optional<std::size_t> on_, off_;  // events
  bool is_discarding_ = false;
};

}  // namespace tacho::report
