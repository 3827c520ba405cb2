// perf_event_attr as text, in the forms of perf's header and of `perf evlist -v`.
#pragma once

#include <string>
#include <string_view>

#include "format/records/event_attr.h"

namespace tacho::report {

// The fields that are not zero: ", type = 1, size = 128" (Header), "type: 1, size: 128" (Evlist).
enum class AttrList : std::uint8_t { Header, Evlist };
std::string attr_text(const format::EventAttr& attr, AttrList form);

}  // namespace tacho::report
