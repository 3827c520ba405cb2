// Where the commands to a running recording come from, as --control names it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "format/result.h"

namespace tacho::record {

struct ControlPlace {
  bool is_fifo = false;
  std::string commands, answers;  // descriptor numbers or paths; no answers: empty
};
// "fd:N[,M]" or "fifo:PATH[,PATH]".
Result<ControlPlace> parse_control(std::string_view text);
// The number of a descriptor; nothing when it is none.
std::optional<int> parse_descriptor(std::string_view text);

}  // namespace tacho::record
