// What -e says of a BPF object: values for its globals, and the names of its events.
#pragma once

#include <functional>
#include <string>

#include "bpf/user_object.h"
#include "format/result.h"
#include "record/events/event_request.h"

namespace tacho::record {

// Values for the globals of an object, as its -e says them. An error points at the letter. `cgroup` of a
// recorder that tacho carries is a path, of which the object is told the number.
Result<> set_constants(bpf::UserObject& object, const EventRequest& request);

// A name for an event that an object brings: `name`, or where another -e brought that already "name.2", ...
std::string distinct_name(const std::string& name, const std::function<bool(const std::string&)>& is_taken);

}  // namespace tacho::record
