// The reading program, for what a recording hands over to it.
#pragma once

#include <optional>
#include <string>

namespace tacho::record {

// Its path beside this program; nothing when it is not installed there.
std::optional<std::string> report_program();

}  // namespace tacho::record
