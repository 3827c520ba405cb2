// A heat map for terminals, and as JSON for programs.
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

// The words of a heat map: a box as it is typed behind --box and as it is read, and what all forms of a map
// say.

// Samples from `from` until before `until` (ns), with values from `low` to `high`, both inside. Of offsets
// the values are nanoseconds of each second.
struct HeatBox {
  std::uint64_t from = 0, until = std::numeric_limits<std::uint64_t>::max();
  std::int64_t low = std::numeric_limits<std::int64_t>::min();
  std::int64_t high = std::numeric_limits<std::int64_t>::max();

  bool has(std::uint64_t time, std::int64_t value) const {
    return time >= from && time < until && value >= low && value <= high;
  }
};

struct HeatFacts {
  std::string title;               // "lat_ns of io"
  std::string name, unit;          // of the values; unit may be empty
  std::uint64_t period = 0;        // ns: values are offsets in this; 0: they are none
  std::string command;             // what makes the map, for a shell: "tacho heatmap -i a.data"
  std::vector<std::string> notes;  // lines about the capture
};

// "12.5", of nanoseconds.
std::string seconds_text(std::uint64_t time);
// To three digits, in a unit that suits: "1.05 ms", "4 KiB", "1.2k".
std::string amount_text(std::int64_t value, std::string_view unit);
// Like the latter, without what follows the least value of a row: "1.05 ms to 2.1 ms", "7".
std::string values_text(std::int64_t low, std::int64_t high, const HeatFacts& facts);
// "12.5..12.6,1024..2047", of offsets "12..13,0.34..0.36".
std::string box_words(const HeatBox& box, const HeatFacts& facts);
// "12.5 s to 12.6 s, lat_ns 1024..2047".
std::string box_text(const HeatBox& box, const HeatFacts& facts);
HeatBox box_of(const HeatMap& map, std::size_t column, std::size_t row);
// "20,000 samples in 200 columns of 100 ms and 40 rows".
std::string map_text(const HeatMap& map);

// What --box says: times and values, each a range or a point. A point means the box of the map around
// it.
struct BoxQuestion {
  HeatBox box;
  bool is_time_point = false, is_value_point = false;  // then `from` and `low` are it
};
// `unit`: of the values. An error of the use.
Result<BoxQuestion> parse_box(std::string_view text, const HeatFacts& facts);
// An error of the use: the point is outside of the map.
Result<HeatBox> find_box(const BoxQuestion& question, const HeatMap& map, const HeatFacts& facts);

// Classes of counts, which colours, shades and digits stand for: the least count of each, ascending from 1
// up; at most `most` of them, and no more than there are counts. Counts of values are far apart, so each
// class is so many times the one before; counts of offsets are not, so their classes are equally wide.
std::vector<std::uint64_t> count_classes(const HeatMap& map, const HeatFacts& facts, std::size_t most);
// The class of a count above 0.
std::size_t class_of(std::uint64_t count, const std::vector<std::uint64_t>& classes);

// What a box is: a digit from 1 up, or a block with a shade and a colour. The legend says which counts it
// stands for.
enum class HeatCells : std::uint8_t { Digits, Shades };

// Letters that stand left of the boxes; the others of a line are columns.
constexpr std::size_t kTextMargin = 12;
// `room`: columns that lines have.
void write_heat_text(TextOutput& out, const HeatMap& map, const HeatFacts& facts, HeatCells cells,
                     std::size_t room);

// One object; boxes without samples are left out.
void write_heat_json(TextOutput& out, const HeatMap& map, const HeatFacts& facts);

}  // namespace tacho::report
