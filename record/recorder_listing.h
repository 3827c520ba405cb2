// `tacho list recorders`, `tacho record -e NAME/help/`, and the views to begin with.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "format/cursor.h"
#include "format/result.h"
#include "record/events/event_request.h"
#include "record/listing.h"

namespace tacho::record {

// A line for each recorder whose name matches, an error when none does. `pattern`: a glob or a part of a
// name.
Result<std::string> list_recorders(const ListOptions& options);

// Its options, what its events hold, what it hooks and how to look at it: a text of several lines. Of the
// user's own BPF program as well, but for the last.
Result<std::string> recorder_help(const EventRequest& request);

// The object behind a request that names a recorder.
Result<format::Bytes> object_of(const EventRequest& request);

// Which view to begin with, for each recorder among the events: "open: tacho table --by path,error -i FILE".
std::vector<std::string> first_views(std::span<const EventRequest> events, const std::string& capture);

}  // namespace tacho::record
