#include "report/views/report/latency.h"

#include <algorithm>

namespace tacho::report {

bool asks_for_parallelism(const ReportOptions& options) {
  const auto names = [](const std::string& keys) {
    return keys.find("lat") != std::string::npos || keys.find("paral") != std::string::npos;
  };
  return options.prefers_latency || !options.parallelism.empty() || names(options.sort) ||
         names(options.fields);
}

bool shows_latency(const ReportColumns& columns) {
  return std::ranges::any_of(columns.shown, [](const Column& column) { return is_latency(column.kind); });
}

Result<> check_switches(const Session& session, const ReportColumns& columns, const ReportOptions& options) {
  const bool has_key =
      std::ranges::any_of(columns.keys, [](const KeyUse& use) { return use.key->name == "parallelism"; });
  if (!has_key && !shows_latency(columns) && options.parallelism.empty()) return Done{};
  const bool has_switches = std::ranges::any_of(session.events(), [](const format::Event& event) {
    return event.attr.has(format::abi::kContextSwitch);
  });
  if (has_switches) return Done{};
  return use_error(
      "--latency, --parallelism and the keys latency and parallelism need to know when threads ran; record "
      "with "
      "--switch-events (perf 7: --latency) to have that");
}

std::function<Weight(const ProfileRow&, const Weight&)> weighed_by_latency(const Profile& profile,
                                                                           std::size_t fact) {
  return [&profile, fact](const ProfileRow& row, const Weight& weight) {
    return Weight{weight.period / std::max<std::uint64_t>(profile.facts(row)[fact], 1), weight.samples};
  };
}

}  // namespace tacho::report
