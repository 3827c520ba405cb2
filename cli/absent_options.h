// Options of perf that a command does not have. Each is refused with what to use instead, not with a guess at
// a similar name.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "cli/options.h"

namespace tacho::cli {

struct AbsentOption {
  std::string_view names;  // perf's: "-D,--dump-raw-trace"
  Takes takes = Takes::Nothing;
  std::string_view instead;  // the message after "--dump-raw-trace: "
};

// Appends rows for these options, which --help does not list. A spelling that `rows` already has keeps its
// meaning, so call this last. `absent` must outlive the parsing (a constexpr table does).
void add_absent_options(std::vector<Option>& rows, std::span<const AbsentOption> absent);

}  // namespace tacho::cli
