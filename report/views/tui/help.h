// The page of keys (?), of all views in the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tacho::report {

enum class KeysOf : std::uint8_t { List, Code, Samples, HeatMap, Histogram };

// The keys of the view at hand stand first. `is_live`: of tacho top.
std::vector<std::string> help_lines(KeysOf here, bool is_live);

}  // namespace tacho::report
