// Texts of pictures: escaped for XML, and made to fit a width.
#pragma once

#include <string>
#include <string_view>

namespace tacho::report {

// Escapes a text for XML content and attributes. Characters that XML forbids become \xNN.
std::string xml_text(std::string_view text);

// Width in px of an average character at font size 12 px, for places of texts in a row.
constexpr double kSvgLetter = 6.9;
// The part of a text that fits into `width` px with 3 px at either side, by the letters of DejaVu Sans: wider
// than those of most fonts. Empty when fewer than two letters fit.
std::string fitting_text(std::string_view text, double width);
// "f<...>::g" of "f<a, b<c>>::g". What are no brackets stays: "operator<", "->".
std::string without_template_arguments(std::string_view name);
// A function's name, if it does not fit without the arguments of templates, or else without its middle too.
// browser/labels.js has the same.
std::string fitting_name(std::string_view name, double width);

}  // namespace tacho::report
