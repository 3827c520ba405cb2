// Texts of pictures: what an SVG file may hold between its tags, how much of it fits, and what pictures say
// of captures.
#pragma once

#include <string>
#include <string_view>

#include "format/container/environment.h"

namespace tacho::report {

// A text in XML, between tags or in an attribute. Characters that XML cannot have become \xNN.
std::string xml_text(std::string_view text);

// 1234567 -> "1,234,567"; a fraction is cut off.
std::string with_commas(double value);

// "cycles on HOST: COMMAND": behind `what`, which may be empty and is safe to print, where a capture was
// recorded, and by which command. Of a long command the first 200 letters.
std::string with_origin(std::string what, const format::Environment& environment);

// px of an average letter of 12 px.
constexpr double kSvgLetter = 6.9;
// As much of a text as fits into `width` px, by the width of an average letter; letters of other scripts may
// be twice as wide. Empty: not even three letters do.
std::string fitting_text(std::string_view text, double width);

}  // namespace tacho::report
