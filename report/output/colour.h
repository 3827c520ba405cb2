// Colours of text on a terminal, by the escape sequences that perf writes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/base/result.h"

namespace tacho::report {

// Auto: colours on a terminal that has them, unless NO_COLOR is set and not empty (https://no-color.org).
enum class Colour : std::uint8_t { Auto, Always, Never };

// "always", "auto", "never"; `option` names it in messages.
Result<Colour> parse_colour(std::string_view option, std::string_view text);

// Whether to colour. `is_for_person` is that of the output (OutputFile::is_for_person()).
bool has_colour(Colour colour, bool is_for_person);

// `text` in perf's colour for a percentage: red from 5 on, green above 0.5, otherwise plain.
std::string coloured_share(double percent, std::string_view text);

}  // namespace tacho::report
