// `tacho list recorders`, `tacho record -e NAME/help/`, and the views to begin with.
#pragma once

#include <string>
#include <vector>

#include "format/result.h"
#include "record/events/event_request.h"
#include "record/list/listing.h"

namespace tacho::record {

// A line for each recorder whose name matches, an error when none does. `pattern`: a glob or a part of a
// name.
Result<std::string> list_recorders(const ListOptions& options);

// Its options, what its events hold, what it hooks and how to look at it: a text of several lines. Of the
// user's own BPF program as well, but for the last.
Result<std::string> recorder_help(const EventRequest& request);

}  // namespace tacho::record
