// Texts of pictures: what an SVG file may hold between its tags, and how much of it fits.
#pragma once

#include <string>
#include <string_view>

namespace tacho::report {

// A text in XML, between tags or in an attribute. Characters that XML cannot have become \xNN.
std::string xml_text(std::string_view text);

// 1234567 -> "1,234,567"; a fraction is cut off.
std::string with_commas(double value);

// px of an average letter of 12 px.
constexpr double kSvgLetter = 6.9;
// As much of a text as fits into `width` px, by the width of an average letter; letters of other scripts may
// be twice as wide. Empty: not even three letters do.
std::string fitting_text(std::string_view text, double width);

}  // namespace tacho::report
