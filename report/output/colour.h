// Colours of text on a terminal, in perf's bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "format/base/result.h"

namespace tacho::report {

// Auto: on a terminal that has colours, unless NO_COLOR is set (https://no-color.org: to anything but
// nothing).
enum class Colour : std::uint8_t { Auto, Always, Never };

// "always", "auto", "never"; `option` names it in messages.
Result<Colour> parse_colour(std::string_view option, std::string_view text);

// Whether to colour, when the text goes to a person (OutputFile::is_for_person) or not.
bool has_colour(Colour colour, bool is_for_person);

// `text` as perf colours a share of `percent`: red from 5 on, green above 0.5, others plain.
std::string coloured_share(double percent, std::string_view text);

}  // namespace tacho::report
