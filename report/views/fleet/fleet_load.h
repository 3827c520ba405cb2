// tacho fleet load: captures into a fleet's database.
#pragma once

#include <string>
#include <vector>

#include "report/command.h"
#include "report/tables/made_tables.h"
#include "report/views/fleet/fleet_store.h"

namespace tacho::report {

struct LoadRequest {
  ReadingOptions reading;
  FleetPlace place;
  CaptureLabels labels;
  std::vector<std::string> inputs;  // captures, and folders of captures
  std::string followed;             // --follow: a folder; empty: none
};

// Loads each capture once. What cannot be loaded is set aside: named on stderr with the reason, and the next
// one is loaded.
Result<cli::ExitStatus> load_fleet(const LoadRequest& request);

}  // namespace tacho::report
