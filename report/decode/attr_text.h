// An event's attributes in words, as perf lists them in headers and with `evlist -v`.
#pragma once

#include <string>
#include <string_view>

#include "format/records/event_attr.h"

namespace tacho::report {

// Fields that are not zero: ", type = 1, size = 128" in the header, "type: 1, size: 128" in the list of
// events.
enum class AttrList : std::uint8_t { Header, Evlist };
std::string attr_text(const format::EventAttr& attr, AttrList form);

}  // namespace tacho::report
