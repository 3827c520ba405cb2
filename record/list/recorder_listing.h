// `tacho list recorders` and `tacho record -e NAME/help/`.
#pragma once

#include <string>
#include <vector>

#include "format/base/result.h"
#include "record/events/event_request.h"
#include "record/list/listing.h"

namespace tacho::record {

// A line for each recorder whose name matches, an error when none does. `pattern`: a glob or a part of a
// name.
Result<std::string> list_recorders(const ListOptions& options);

// Its options, its events' fields, its hooks and its view: a text of several lines. Of a user's BPF program
// as well, but for the view.
Result<std::string> recorder_help(const EventRequest& request);

}  // namespace tacho::record
