// `tacho list recorders`, and `tacho record -e NAME/help/`.
#pragma once

#include <string>

#include "format/cursor.h"
#include "format/result.h"
#include "record/events/event_request.h"

namespace tacho::record {

// A line for each recorder whose name matches, an error when none does. `pattern`: a glob or a part of a
// name.
Result<std::string> list_recorders(const std::string& pattern);

// Its options, what its events hold, what it hooks and how to look at it: a text of several lines.
Result<std::string> recorder_help(const EventRequest& request);

// The object behind a request that names a recorder.
Result<format::Bytes> object_of(const EventRequest& request);

}  // namespace tacho::record
