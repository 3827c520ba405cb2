// What an event is called: as the capture says, or as perf would name it by its attributes.
#pragma once

#include <string>

#include "format/event_set.h"
#include "format/features.h"

namespace tacho::report {

std::string event_name(const format::Event& event, const format::Features& features);

}  // namespace tacho::report
