// Options of another program (perf) that a command does not have: each is refused with a line that
// says what to do instead, never with a guess at another option's name.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "cli/options.h"

namespace tacho::cli {

struct AbsentOption {
  std::string_view names;  // "-D,--dump-raw-trace", as the other program spells them
  Takes takes = Takes::Nothing;
  std::string_view instead;  // what to do; stands behind "--dump-raw-trace: "
};

// Appends rows for these options, which --help does not list. A spelling that `rows` has already keeps its
// meaning: so the call comes last. `absent` must outlive the parsing (a constexpr table does).
void add_absent_options(std::vector<Option>& rows, std::span<const AbsentOption> absent);

}  // namespace tacho::cli
