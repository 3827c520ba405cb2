// All sort keys, found by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/profile/sort_key.h"

namespace tacho::report {

// In perf's order: a part of a name stands for the first key that begins so.
std::vector<const SortKey*> sort_keys();
// The keys of a word of --sort or --fields: one, or all fields that it names ("SUBSYS:NAME.FIELD", "FIELD",
// with "*" for all of an event; "/raw" behind it: as numbers). A part of a name stands for the first key that
// begins so, as in perf: "sym". Empty: there is none in the report's mode.
std::vector<KeyUse> find_sort_keys(std::string_view word, SampleFacts& facts);
// The names of a mode's own keys, for messages: of Samples those that every mode has.
std::string sort_key_names(ReportMode mode);

}  // namespace tacho::report
