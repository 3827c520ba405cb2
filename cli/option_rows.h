// The rows that most command lines have: each form of an option once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/options.h"

namespace tacho::cli {

// An option without a value: sets `target`, which must outlive the parsing as in all rows here.
Option flag(std::string names, std::string help, bool& target);
// An option whose value goes into `target` as it stands. `value` is what --help calls it: "FILE".
Option text(std::string names, std::string value, std::string help, std::string& target);
// An option whose value is a number from `least` to `most`. Messages name the option by its last spelling.
Option number(std::string names, std::string value, std::string help, std::uint64_t least, std::uint64_t most,
              std::uint64_t& target);
// An option that perf has and that changes nothing here; its value is taken and left alone.
Option accepted(std::string names, Takes takes, std::string help);

// Marks the rows from number `first` on as those of most commands.
void mark_common(std::vector<Option>& rows, std::size_t first);

}  // namespace tacho::cli
