// Which samples of a fleet a question is about.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "format/base/result.h"
#include "report/views/fleet/fleet_store.h"

namespace tacho::report {

inline constexpr std::int64_t kFleetHour = 3'600'000'000'000;  // ns: a row's time in samples_1h

// Empty texts are any.
struct FleetChoice {
  std::string service, release, host, host_class, kernel, cgroup, comm, event;
  // ns since 1970, both inclusive.
  std::int64_t from = std::numeric_limits<std::int64_t>::min() + 1;
  std::int64_t to = std::numeric_limits<std::int64_t>::max();

  SqlValues values() const;
  // Whether the time is of whole hours, or any: then sums of hours (samples_1h) are enough.
  bool is_of_hours() const;
};

// --service, --release, --host, --host-class, --kernel, --cgroup, --comm, --event, --from, --to.
void add_choice_options(std::vector<cli::Option>& rows, FleetChoice& choice);
// "release=2.0,host-class=old" changes these of a choice.
Result<> change_choice(std::string_view option, std::string_view text, FleetChoice& choice);

// "2026-11-29", "2026-11-29 01:30", "2026-11-29T01:30:05Z" (UTC), or seconds since 1970; ns.
Result<std::int64_t> parse_moment(std::string_view option, std::string_view text);

// Chooses the event with the most samples, if none is named. An error: the choice has no samples.
struct FleetEvent {
  std::string name, unit;
};
Result<FleetEvent> find_event(FleetStore& store, const FleetChoice& choice);

}  // namespace tacho::report
