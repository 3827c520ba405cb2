// Makes the usual kinds of options: a flag, a text, a number, an option without effect.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/options.h"

namespace tacho::cli {

// An option without a value: sets `target` to `given`. The target must outlive the parsing, as in all rows
// here.
Option flag(std::string names, std::string help, bool& target, bool given = true);
// An option with a text as its value, which sets `target`. `value` is its name in --help: "FILE".
Option text(std::string names, std::string value, std::string help, std::string& target);
// An option whose value is a number from `least` to `most`. Messages name the option by its last spelling.
Option number(std::string names, std::string value, std::string help, std::uint64_t least, std::uint64_t most,
              std::uint64_t& target);
// An option for another program: appends its last spelling, with "=VALUE" if it has one, to `words`.
Option passed_on(std::string names, Takes takes, std::string value, std::string help,
                 std::vector<std::string>& words);
// An option of perf that is accepted without effect; its value is ignored.
Option accepted(std::string names, Takes takes, std::string help);

// Marks the rows from index `first` on as common options (Option::is_common).
void mark_common(std::vector<Option>& rows, std::size_t first);

}  // namespace tacho::cli
