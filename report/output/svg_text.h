// Text in SVG pictures: escaping, cutting to a width, and headings.
#pragma once

#include <string>
#include <string_view>

#include "format/container/environment.h"

namespace tacho::report {

// Escapes a text for XML content and attributes. Characters that XML forbids become \xNN.
std::string xml_text(std::string_view text);

// 1234567 -> "1,234,567"; a fraction is cut off.
std::string with_commas(double value);

// "cycles on HOST: COMMAND": `what` (safe to print, may be empty), the recording host, and the first 200
// characters of the recorder's command line.
std::string with_origin(std::string what, const format::Environment& environment);

// Width in px of an average character at font size 12 px.
constexpr double kSvgLetter = 6.9;
// The part of a text that fits into `width` px, counting an average width for each character and twice that
// for wide scripts. Empty when fewer than three characters fit.
std::string fitting_text(std::string_view text, double width);

}  // namespace tacho::report
