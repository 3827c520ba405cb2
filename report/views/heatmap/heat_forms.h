// The forms of a heat map: text for terminals, JSON, and one SVG file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/result.h"
#include "report/output/text_output.h"
#include "report/views/heatmap/heat_map.h"

namespace tacho::report {

inline constexpr std::uint64_t kEver = std::numeric_limits<std::uint64_t>::max();  // a box without an end

// Samples with times in [from, until) (ns) and values in [low, high]. Values that are offsets are nanoseconds
// within a period.
struct HeatBox {
  std::uint64_t from = 0, until = kEver;
  Int128 low = kLowest, high = kHighest;

  bool has(std::uint64_t time, Int128 value) const {
    return time >= from && time < until && value >= low && value <= high;
  }
};

struct HeatFacts {
  std::string title;               // "lat_ns of io"
  std::string name, unit;          // of the values; unit may be empty
  std::uint64_t period = 0;        // ns: values are offsets in this; 0: they are no offsets
  std::string command;             // the command of the map, quoted for a shell: "tacho heatmap -i a.data"
  std::vector<std::string> notes;  // lines about the capture
};

// Nanoseconds as seconds: "12.5".
std::string seconds_text(std::uint64_t time);
// To three digits, in a unit that suits: "1.05 ms", "4 KiB", "1.2k".
std::string amount_text(Int128 value, std::string_view unit);
// A period of offsets, from ns: "second", "100 ms".
std::string period_text(std::uint64_t period);
// A range, or one number if it has one value: "1.05 ms to 2.1 ms", "7".
std::string values_text(Int128 low, Int128 high, const HeatFacts& facts);
// The argument of --box: "12.5..12.6,1024..2047", of offsets "12..13,0.34..0.36".
std::string box_argument(const HeatBox& box, const HeatFacts& facts);
// "12.5 s to 12.6 s, lat_ns 1024..2047".
std::string box_text(const HeatBox& box, const HeatFacts& facts);
HeatBox box_of(const HeatMap& map, std::size_t column, std::size_t row);
// "20,000 samples in 200 columns of 100 ms and 40 rows".
std::string map_text(const HeatMap& map);

// The argument of --box: times and values, each a range or a point. A point is the box of the map that
// contains it.
struct BoxArgument {
  HeatBox box;
  bool is_time_point = false, is_value_point = false;  // the point is then `from`, or `low`
};
// Errors are usage errors.
Result<BoxArgument> parse_box(std::string_view text, const HeatFacts& facts);
// A usage error if the point is outside of the map.
Result<HeatBox> find_box(const BoxArgument& argument, const HeatMap& map, const HeatFacts& facts);

// Classes of counts, one for each colour, shade or digit: the least count of each, ascending from 1, at most
// `most` classes. Counts of values span orders of magnitude, so their classes grow by a factor; classes of
// offsets are equally wide.
std::vector<std::uint64_t> count_classes(const HeatMap& map, const HeatFacts& facts, std::size_t most);
// The class of a count above 0.
std::size_t class_of(std::uint64_t count, const std::vector<std::uint64_t>& classes);

// How a box is drawn: a digit from 1 up, or a block with a shade and a colour. The legend has the counts of
// each.
enum class HeatCells : std::uint8_t { Digits, Shades };

constexpr std::size_t kHeatDigits = 9;
// The width of the labels left of the boxes.
constexpr std::size_t kTextMargin = 12;
// Characters that a column of a map has, in lines of `room`. The map is not empty.
std::size_t heat_column_width(const HeatMap& map, std::size_t room);
// The lines below the boxes: marks, and the times at these.
struct HeatAxis {
  std::string marks, times;
};
HeatAxis heat_axis(const HeatMap& map, std::size_t wide);
// `room`: the width of a line.
void write_heat_text(TextOutput& out, const HeatMap& map, const HeatFacts& facts, HeatCells cells,
                     std::size_t room);

// One object; boxes without samples are left out.
void write_heat_json(TextOutput& out, const HeatMap& map, const HeatFacts& facts);

// Writes one SVG file with tooltips, and a script for browsers. `width`: px. Texts of `facts` are safe to
// print (printable.h).
void write_heat_svg(TextOutput& out, const HeatMap& map, const HeatFacts& facts, unsigned width);

}  // namespace tacho::report
