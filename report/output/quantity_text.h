// Numbers as people read them: "9.93 s", "380 ns", "64 KiB", "1.23 M", "14.2 %". Three digits, in the scale
// that fits the unit: "6.00 ms" was rounded, and "6 ms" is exact. Whole counts below a million, and
// whole numbers without a unit, have all their digits ("1,204"). JSON and CSV have the raw numbers.
#pragma once

#include <string>
#include <string_view>

namespace tacho::report {

// `unit`: that of a field or of an event's weights: "ns", "us", "bytes", "%", "samples"; empty: a bare
// number. Units that are neither times nor sizes are printed after the number, made safe.
std::string quantity_text(double value, std::string_view unit);
// The same with the sign of a change: "+1.5 ms".
std::string change_text(double value, std::string_view unit);

// Of a test: "p 0.029", "p <0.001".
std::string p_text(double p);

}  // namespace tacho::report
