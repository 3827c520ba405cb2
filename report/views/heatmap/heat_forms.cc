#include "report/views/heatmap/heat_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <vector>

#include "cli/expression.h"
#include "report/output/field_sinks.h"
#include "report/output/heat_colours.h"
#include "report/output/quantity_text.h"
#include "report/output/svg_text.h"
#include "report/output/ticks.h"
#include "report/query/expressions.h"
#include "report/samples/filter.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;  // ns

// The ends of a range "A..B", or a point, which is `first`.
struct Ends {
  std::string_view first, last;
  bool is_range = false;
};
Ends ends_of(std::string_view text) {
  const auto dots = text.find("..");
  if (dots == std::string_view::npos) return {text, {}, false};
  return {text.substr(0, dots), text.substr(dots + 2), true};
}

Error wrong_box(std::string_view text, const HeatFacts& facts) {
  return use_error("--box: '" + std::string(text) +
                   "' is no box; it is TIME,VALUE, each a point or a range, as " +
                   (facts.period != 0 ? "12..13,0.34..0.36" : "12.5..12.6,1024..2047") +
                   "; the tooltips of the map show it for each box");
}

// Seconds with up to nine decimals -> ns.
std::optional<std::uint64_t> seconds_in(std::string_view text) {
  if (text.empty() || text.find_first_of(" ,%") != std::string_view::npos) return std::nullopt;
  const auto range = parse_times(std::string(text) + ",", {});
  return range ? std::optional(range->front().first) : std::nullopt;
}

// "-5", "1.5ms" or "4k", in the field's unit; fractions are rounded up, or down.
std::optional<Int128> value_in(std::string_view text, std::string_view unit, bool up) {
  const auto parsed = cli::parse_expression("", text);
  if (!parsed) return std::nullopt;
  const bool is_negative = parsed->root().operation == cli::Operation::Minus;
  if (parsed->nodes.size() != (is_negative ? 2U : 1U)) return std::nullopt;
  const cli::ExpressionNode& node = parsed->nodes.front();
  std::uint64_t size = 1;
  if (node.unit != cli::NumberUnit::None) {
    const auto of_field = field_unit(unit);
    if (!of_field || of_field->kind != node.unit) return std::nullopt;
    size = of_field->size;
  }
  const bool is_whole = node.operation == cli::Operation::Whole;
  if (is_whole && size == 1) return is_negative ? std::max(-Int128{node.whole}, kLowest) : node.whole;
  if (!is_whole && node.operation != cli::Operation::Real) return std::nullopt;
  double number = is_whole ? static_cast<double>(node.whole) : node.real;
  number = (is_negative ? -number : number) / static_cast<double>(size);
  number = up ? std::ceil(number) : std::floor(number);
  return number_of(number);
}

}  // namespace

std::string seconds_text(std::uint64_t time) {
  std::string text = fmt::format("{}.{:09}", time / kSecond, time % kSecond);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string amount_text(Int128 value, std::string_view unit) {
  return value == 0 ? "0" : quantity_text(static_cast<double>(value), unit);
}

std::string period_text(std::uint64_t period) {
  return period == kSecond ? "second" : amount_text(period, "ns");
}

std::string values_text(Int128 low, Int128 high, const HeatFacts& facts) {
  if (low == high) return amount_text(low, facts.unit);
  const std::string last = high == kHighest ? "any" : amount_text(high + 1, facts.unit);
  return (low == kLowest ? "any" : amount_text(low, facts.unit)) + " to " + last;
}

std::string box_argument(const HeatBox& box, const HeatFacts& facts) {
  const std::string text = (box.from == 0 ? "" : seconds_text(box.from)) + ".." +
                           (box.until == kEver ? "" : seconds_text(box.until));
  if (facts.period != 0)
    return text + "," + seconds_text(static_cast<std::uint64_t>(box.low)) + ".." +
           seconds_text(static_cast<std::uint64_t>(box.high) + 1);
  return text + "," + (box.low == kLowest ? "" : decimal_text(box.low)) + ".." +
         (box.high == kHighest ? "" : decimal_text(box.high));
}

std::string box_text(const HeatBox& box, const HeatFacts& facts) {
  std::string text = box.from == 0 ? "" : "from " + seconds_text(box.from) + " s ";
  if (box.until != kEver) text += "until " + seconds_text(box.until) + " s";
  if (text.empty()) text = "all times";
  if (text.ends_with(' ')) text.pop_back();
  return text + ", " + facts.name + " " + values_text(box.low, box.high, facts);
}

HeatBox box_of(const HeatMap& map, std::size_t column, std::size_t row) {
  const std::uint64_t from = map.begin_of(column);
  return {from, from > kEver - map.interval ? kEver : from + map.interval, map.rows[row].low,
          map.rows[row].high};
}

std::string map_text(const HeatMap& map) {
  return fmt::format("{} sample{} in {} column{} of {} and {} row{}",
                     with_commas(static_cast<double>(map.total)), map.total == 1 ? "" : "s", map.columns,
                     map.columns == 1 ? "" : "s", amount_text(map.interval, "ns"), map.rows.size(),
                     map.rows.size() == 1 ? "" : "s");
}

Result<BoxArgument> parse_box(std::string_view text, const HeatFacts& facts) {
  const auto comma = text.find(',');
  if (comma == std::string_view::npos) return wrong_box(text, facts);
  const Ends times = ends_of(text.substr(0, comma)), values = ends_of(text.substr(comma + 1));
  BoxArgument argument;
  HeatBox& box = argument.box;
  argument.is_time_point = !times.is_range;
  argument.is_value_point = !values.is_range;
  // An end that is left out is `open`.
  const auto time = [](std::string_view end, std::uint64_t open) {
    return end.empty() ? std::optional(open) : seconds_in(end);
  };
  const auto value = [&](std::string_view end, Int128 open, bool up) {
    return end.empty() ? std::optional(open) : value_in(end, facts.unit, up);
  };
  const auto from = time(times.first, box.from), until = time(times.last, box.until);
  if (!from || !until || (argument.is_time_point && times.first.empty())) return wrong_box(text, facts);
  box.from = *from;
  box.until = *until;
  if (facts.period != 0) {
    const auto low = time(values.first, 0), high = time(values.last, facts.period);
    if (!low || !high || *low >= facts.period || *high > facts.period || *high == 0)
      return wrong_box(text, facts);
    box.low = *low;
    box.high = *high - 1;
  } else {
    const auto low = value(values.first, box.low, true), high = value(values.last, box.high, false);
    if (!low || !high || (argument.is_value_point && values.first.empty())) return wrong_box(text, facts);
    box.low = *low;
    box.high = *high;
  }
  if (box.from >= box.until || box.low > box.high)
    return use_error("--box: '" + std::string(text) + "': the first end of a range must be the lower one");
  return argument;
}

Result<HeatBox> find_box(const BoxArgument& argument, const HeatMap& map, const HeatFacts& facts) {
  HeatBox box = argument.box;
  if (map.is_empty()) return box;
  if (argument.is_time_point) {
    if (box.from < map.begin || (box.from - map.begin) / map.interval >= map.columns)
      return use_error("--box: " + seconds_text(box.from) + " s is outside of the map, which goes from " +
                       seconds_text(map.begin) + " s to " +
                       seconds_text(box_of(map, map.columns - 1, 0).until) + " s");
    const HeatBox found = box_of(map, (box.from - map.begin) / map.interval, 0);
    box.from = found.from;
    box.until = found.until;
  }
  if (argument.is_value_point) {
    const auto row = std::ranges::find_if(
        map.rows, [&](const Bucket& one) { return box.low >= one.low && box.low <= one.high; });
    if (row == map.rows.end())
      return use_error("--box: " + amount_text(box.low, facts.unit) +
                       " is outside of the map, which goes from " + decimal_text(map.rows.front().low) +
                       " to " + decimal_text(map.rows.back().high));
    box.low = row->low;
    box.high = row->high;
  }
  return box;
}

std::vector<std::uint64_t> count_classes(const HeatMap& map, const HeatFacts& facts, std::size_t most) {
  const std::uint64_t highest = map.most;
  std::vector<std::uint64_t> classes;
  if (highest == 0) return classes;
  if (highest <= most) {
    for (std::uint64_t count = 1; count <= highest; ++count) classes.push_back(count);
    return classes;
  }
  if (facts.period != 0) {
    for (std::uint64_t i = 0; i < most; ++i)
      classes.push_back(highest / most * i + highest % most * i / most + 1);
    return classes;
  }
  const double step = std::log(static_cast<double>(highest)) / static_cast<double>(most);
  for (std::size_t i = 0; i < most; ++i) {
    const auto least = static_cast<std::uint64_t>(std::ceil(std::exp(step * static_cast<double>(i)) - 1e-9));
    classes.push_back(classes.empty() ? 1 : std::max(least, classes.back() + 1));
  }
  return classes;
}

std::size_t class_of(std::uint64_t count, const std::vector<std::uint64_t>& classes) {
  return static_cast<std::size_t>(std::ranges::upper_bound(classes, count) - classes.begin()) - 1;
}

std::size_t heat_column_width(const HeatMap& map, std::size_t room) {
  constexpr std::size_t kWidest = 6;
  const std::size_t left = std::max(room, kTextMargin) - kTextMargin;
  return std::clamp<std::size_t>(left / map.columns, 1, kWidest);
}

// The times are so far apart that their texts do not overlap.
HeatAxis heat_axis(const HeatMap& map, std::size_t wide) {
  constexpr std::uint64_t kSteps[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
  const std::size_t room = seconds_text(map.begin_of(map.columns - 1)).size() + 5;
  const auto* const step =
      std::ranges::find_if(kSteps, [&](std::uint64_t columns) { return columns * wide >= room; });
  const std::uint64_t every = map.interval * (step == std::end(kSteps) ? 1000 : *step);
  HeatAxis axis{std::string(kTextMargin - 1, ' ') + '+', {}};
  auto& [marks, times] = axis;
  for (std::size_t column = 0; column < map.columns; ++column) {
    const std::string time = seconds_text(map.begin_of(column)) + " s";
    const std::size_t at = column * wide;
    if (map.begin_of(column) % every != 0 || at + time.size() > map.columns * wide + 1) continue;
    marks.resize(kTextMargin + at, '-');
    marks += '|';
    times.resize(kTextMargin + at, ' ');
    times += time;
  }
  marks.resize(std::max(kTextMargin + map.columns * wide, marks.size()), '-');
  return axis;
}

namespace {

// The last count of a class.
std::uint64_t last_of(std::size_t number, const std::vector<std::uint64_t>& classes, const HeatMap& map) {
  return number + 1 < classes.size() ? classes[number + 1] - 1 : map.most;
}

// The index of a class's shade or colour, of which there are `count`: classes are spread over all of them,
// however few classes there are.
std::size_t spread(std::size_t number, const std::vector<std::uint64_t>& classes, std::size_t count) {
  return classes.size() < 2 ? count - 1 : number * (count - 1) / (classes.size() - 1);
}

// From few samples to many: colours of the 256 of terminals, from dark blue to yellow, each with a block
// character, from light to full.
struct Shade {
  int colour;
  std::string_view block;
};
constexpr Shade kShades[] = {{24, "░"},  {31, "░"},  {67, "▒"},  {66, "▒"},  {102, "▒"},
                             {144, "▓"}, {179, "▓"}, {185, "▓"}, {221, "█"}, {227, "█"}};
constexpr std::string_view kPlain = "\033[m";

class Cells {
 public:
  Cells(HeatCells form, const HeatMap& map, const HeatFacts& facts)
      : form_(form),
        classes_(count_classes(map, facts, form == HeatCells::Digits ? kHeatDigits : std::size(kShades))) {}

  const std::vector<std::uint64_t>& classes() const { return classes_; }
  // A box `width` columns wide. The colour's escape sequence is written only where the colour changes.
  void write(TextBuffer& out, std::uint64_t count, std::size_t width) {
    if (count == 0) return out.blanks(width);
    const std::size_t number = class_of(count, classes_);
    if (form_ == HeatCells::Digits) {
      out.character(static_cast<char>('1' + number));
      return out.blanks(width - 1);
    }
    const std::size_t shade = spread(number, classes_, std::size(kShades));
    if (shade != last_) out.text(fmt::format("\033[38;5;{}m", kShades[shade].colour));
    last_ = shade;
    for (std::size_t i = 0; i < width; ++i) out.text(kShades[shade].block);
  }
  void end(TextBuffer& out) {
    if (last_ != kNone) out.text(kPlain);
    last_ = kNone;
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  HeatCells form_;
  std::vector<std::uint64_t> classes_;
  std::size_t last_ = kNone;  // shade
};

std::string fitted(std::string text, std::size_t width) {
  text.resize(std::min(text.size(), width));
  return std::string(width - text.size(), ' ') + text;
}

void write_legend(TextOutput& out, const HeatMap& map, Cells& cells) {
  out.text("samples:");
  for (std::size_t i = 0; i < cells.classes().size(); ++i) {
    const std::uint64_t least = cells.classes()[i];
    const std::uint64_t last = last_of(i, cells.classes(), map);
    out.text("  ");
    cells.write(out, least, 1);
    cells.end(out);
    out.text(fmt::format(" = {}", least));
    if (last > least) out.text(fmt::format("-{}", last));
  }
  out.character('\n');
}

}  // namespace

void write_heat_text(TextOutput& out, const HeatMap& map, const HeatFacts& facts, HeatCells form,
                     std::size_t room) {
  out.text(facts.title + "\n");
  for (const std::string& note : facts.notes) out.text(note + "\n");
  if (map.is_empty()) return;
  const std::size_t wide = heat_column_width(map, room);
  Cells cells(form, map, facts);
  for (std::size_t row = map.rows.size(); row-- > 0;) {
    out.text(fitted(amount_text(map.rows[row].low, facts.unit), kTextMargin - 2) + " |");
    std::size_t end = map.columns;
    while (end > 0 && map.at(end - 1, row) == 0) --end;
    for (std::size_t column = 0; column < end; ++column) cells.write(out, map.at(column, row), wide);
    cells.end(out);
    out.end_line();
  }
  const HeatAxis axis = heat_axis(map, wide);
  out.text(axis.marks + "\n" + axis.times + "\n");
  write_legend(out, map, cells);
  const auto fullest = static_cast<std::size_t>(std::ranges::max_element(map.counts) - map.counts.begin());
  const HeatBox box = box_of(map, fullest / map.rows.size(), fullest % map.rows.size());
  out.text("to explain the box with most samples:\n  " + facts.command + " --box " +
           box_argument(box, facts) + "\n");
}

void write_heat_json(TextOutput& out, const HeatMap& map, const HeatFacts& facts) {
  JsonFields to(out);
  to.text("field", facts.name);
  if (!facts.unit.empty()) to.text("unit", facts.unit);
  if (facts.period != 0) to.json("period", seconds_text(facts.period));
  to.number("samples", map.total);
  if (!map.is_empty()) {
    to.json("begin", seconds_text(map.begin));
    to.json("interval", seconds_text(map.interval));
  }
  to.number("columns", map.columns);
  to.begin_list("rows");
  for (const Bucket& row : map.rows) {
    to.begin_object({});
    to.json("low", decimal_text(row.low));
    to.json("high", decimal_text(row.high));
    to.number("count", row.count);
    to.end_object();
  }
  to.end_list();
  to.begin_list("boxes");
  for (std::size_t column = 0; column < map.columns; ++column) {
    for (std::size_t row = 0; row < map.rows.size(); ++row) {
      if (map.at(column, row) == 0) continue;
      to.begin_object({});
      to.number("column", column);
      to.number("row", row);
      to.number("count", map.at(column, row));
      to.text("box", box_argument(box_of(map, column, row), facts));
      to.end_object();
    }
    out.line_end();
  }
  to.end_list();
  to.finish();
  out.character('\n');
}

// The script of the picture, as text (heatmap.js and what it imports, joined by cmake/join_modules.cmake).
extern const std::string_view kHeatmapScript;

namespace {

constexpr int kLeft = 86, kGap = 10, kLabelRoom = 90;              // px; heatmap.js has the same
constexpr double kPlotHeight = 512, kLeastRow = 8, kMostRow = 26;  // px
constexpr double kValueRoom = 40, kLabelHeight = 15;               // px
constexpr std::uint64_t kLabelSteps[] = {1, 2, 5, 10, 20, 50, 100, 200, 500};

std::string style() {
  std::string css =
      "svg{overflow-anchor:none}#bg{fill:#fff}text{fill:#1b1b1b;direction:ltr;unicode-bidi:isolate;"
      "white-space:pre}"
      ".title{font-size:17px}.ground{fill:#f3f3f1}.boxes{cursor:pointer;shape-rendering:crispEdges}"
      ".axis text{pointer-events:none}.axis path{stroke:#767676}"
      "rect.chosen{fill:none;stroke:#c4006a;stroke-width:3;pointer-events:none}.live .head{overflow:visible}"
      "foreignObject{pointer-events:none}.headbox,.foot,.help{pointer-events:auto}"
      ".headbox,.tip,.foot,.help{font:12px system-ui,sans-serif;color:#1b1b1b;overflow-wrap:anywhere}"
      ".headbox{padding:8px 10px 2px;background:#fff}"
      ".headbox h1{font-size:17px;font-weight:600;margin:0 0 4px}.headbox p{margin:0 0 4px}"
      ".legend span{margin-right:10px;white-space:nowrap}.legend svg{vertical-align:-2px}"
      ".tip,.foot,.help{background:#fff;border:1px solid #767676;border-radius:4px;padding:5px 8px}"
      ".foot{border-width:1px 0 0;border-radius:0;max-height:40vh;overflow:auto}.foot:empty{display:none}"
      ".foot code{user-select:all;font:12px ui-monospace,monospace}"
      ".help{margin:20px auto;padding:4px 16px;max-width:480px}"
      ".help dl{display:grid;grid-template-columns:auto 1fr;gap:4px 14px}.help dt{font-weight:600}"
      ".help dd{margin:0}svg:focus{outline:none}"
      "svg:focus-visible,.help:focus-visible{outline:2px solid #0b57d0;outline-offset:-2px}";
  const HeatColours colours = heat_colours();
  for (std::size_t i = 0; i < colours.light.size(); ++i)
    css += fmt::format(".h{}{{fill:#{:06x}}}", i, colours.light[i]);
  css +=
      "@media screen and (prefers-color-scheme:dark){#bg{fill:#16181c}text{fill:#f5f5f5}.ground{fill:#23262c}"
      "rect.chosen{stroke:#ff9ad5}.headbox,.tip,.foot,.help{color:#f5f5f5}.headbox{background:#16181c}"
      ".tip,.foot,.help{background:#22252b}";
  for (std::size_t i = 0; i < colours.dark.size(); ++i)
    css += fmt::format(".h{}{{fill:#{:06x}}}", i, colours.dark[i]);
  return css + "}";
}

// Writes one picture.
class Picture {
 public:
  Picture(TextOutput& out, const HeatMap& map, const HeatFacts& facts, unsigned width)
      : out_(out),
        map_(map),
        facts_(facts),
        width_(width),
        classes_(count_classes(map, facts, heat_colours().light.size())),
        row_(std::clamp(kPlotHeight / static_cast<double>(std::max<std::size_t>(map.rows.size(), 1)),
                        kLeastRow, kMostRow)) {}

  void write() {
    const double top = 44 + 16.0 * static_cast<double>(facts_.notes.size() + 2);
    const double high = row_ * static_cast<double>(map_.rows.size());
    begin(top + high + 44);
    head();
    if (!map_.is_empty()) plot(top, high);
    text("<script><![CDATA[\n");
    text(kHeatmapScript);
    text("]]></script>\n</svg>\n");
  }

 private:
  void text(std::string_view more) {
    out_.text(more);
    out_.line_end();
  }
  double wide() const { return width_ - kLeft - 2.0 * kGap; }
  double column() const { return wide() / static_cast<double>(map_.columns); }
  std::size_t colour_of(std::size_t number) const {
    return spread(number, classes_, heat_colours().light.size());
  }

  void begin(double height) {
    text("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    text(fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1:.0f}\" viewBox=\"0 0 {0} "
        "{1:.0f}\" font-family=\"system-ui,Verdana,sans-serif\" font-size=\"12\" data-begin=\"{2}\" "
        "data-interval=\"{3}\" data-columns=\"{4}\" data-total=\"{5}\" data-row=\"{6}\" data-offset=\"{7}\" "
        "data-name=\"{8}\" data-command=\"{9}\">\n",
        width_, height, map_.begin, map_.interval, map_.columns, map_.total, row_, facts_.period != 0 ? 1 : 0,
        xml_text(facts_.name), xml_text(facts_.command)));
    text("<title>" + xml_text(facts_.title) + "</title>\n<style>" + style() + "</style>\n");
    text("<rect id=\"bg\" width=\"100%\" height=\"100%\"/>\n");
  }

  void head() {
    const double room = width_ - 2.0 * kGap;
    text(fmt::format("<g class=\"head\"><text x=\"10\" y=\"24\" class=\"title\" data-text=\"{}\">{}</text>\n",
                     xml_text(facts_.title), xml_text(fitting_text(facts_.title, room * 12 / 17))));
    double y = 44;
    for (const std::string& note : facts_.notes) {
      text(fmt::format("<text x=\"10\" y=\"{:.0f}\" class=\"note\" data-text=\"{}\">{}</text>\n", y,
                       xml_text(note), xml_text(fitting_text(note, room))));
      y += 16;
    }
    double x = kGap;
    text(fmt::format("<text x=\"10\" y=\"{:.0f}\">samples in a box:</text>\n", y));
    x += 17 * kSvgLetter;
    for (std::size_t i = 0; i < classes_.size(); ++i) {
      const std::uint64_t last = last_of(i, classes_, map_);
      std::string counts = with_commas(static_cast<double>(classes_[i]));
      if (last > classes_[i]) counts += "–" + with_commas(static_cast<double>(last));
      text(fmt::format(
          "<g class=\"key\"><rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"12\" height=\"12\" class=\"h{}\"/>"
          "<text x=\"{:.0f}\" y=\"{:.0f}\">{}</text></g>\n",
          x, y - 10, colour_of(i), x + 17, y, counts));
      x += 17 + kSvgLetter * static_cast<double>(counts.size()) + 10;
    }
    text("</g>\n");
  }

  void plot(double top, double high) {
    text("<metadata class=\"rows\">");
    for (std::size_t row = 0; row < map_.rows.size(); ++row)
      text(fmt::format("{}{} {} {}", row == 0 ? "" : "\n", map_.rows[row].low, map_.rows[row].high,
                       xml_text(values_text(map_.rows[row].low, map_.rows[row].high, facts_))));
    text("</metadata>\n");
    text(fmt::format(
        "<g class=\"plot\" transform=\"translate({} {:.0f})\">\n<rect class=\"ground\" width=\"{:.1f}\" "
        "height=\"{:.1f}\"/>\n",
        kLeft, top, wide(), high));
    boxes();
    value_labels(high);
    time_labels(high);
    text("</g>\n");
  }

  // Boxes have coordinates in columns and rows: to zoom, the script changes only the scale.
  void boxes() {
    text(fmt::format("<g class=\"boxes\" transform=\"scale({:.5f} {:.5f})\">\n", column(), row_));
    const std::size_t rows = map_.rows.size();
    for (std::size_t column = 0; column < map_.columns; ++column) {
      for (std::size_t row = 0; row < rows; ++row) {
        const std::uint64_t count = map_.at(column, row);
        if (count == 0) continue;
        const HeatBox box = box_of(map_, column, row);
        text(fmt::format(
            "<rect x=\"{}\" y=\"{}\" width=\"1\" height=\"1\" class=\"h{}\" n=\"{}\"><title>{} sample{}, {}, "
            "--box {}</title></rect>\n",
            column, rows - 1 - row, colour_of(class_of(count, classes_)), count,
            with_commas(static_cast<double>(count)), count == 1 ? "" : "s", xml_text(box_text(box, facts_)),
            box_argument(box, facts_)));
      }
    }
    text("</g>\n");
  }

  // In rows from below: between the edges of its row. The values of the map have a row.
  double place_of(double value) const {
    std::size_t row = 0;
    while (row + 1 < map_.rows.size() && static_cast<double>(map_.rows[row + 1].low) <= value) ++row;
    const auto low = static_cast<double>(map_.rows[row].low),
               high = static_cast<double>(map_.rows[row].high) + 1;
    return static_cast<double>(row) + std::clamp((value - low) / (high - low), 0.0, 1.0);
  }
  // Round values, as many as there is room for.
  void value_labels(double high) {
    text("<g class=\"axis values\">\n");
    const auto size = [](const Bucket& row) { return row.high - row.low; };
    const Bucket &lowest = map_.rows.front(), &highest = map_.rows.back();
    const auto from = static_cast<double>(lowest.low), to = static_cast<double>(highest.high);
    const bool is_linear = size(lowest) == size(highest);
    std::vector<double> taken;  // y
    for (const double value : is_linear ? linear_ticks(from, to, high / kValueRoom)
                                        : log_ticks(std::max(from, 1.0), to, facts_.unit == "bytes")) {
      const double y = high - row_ * place_of(value);
      if (std::ranges::any_of(taken, [y](double other) { return std::abs(other - y) < kLabelHeight; }))
        continue;
      taken.push_back(y);
      text(fmt::format(
          "<path d=\"M-5 {0:.1f}h5\"/><text x=\"-8\" y=\"{1:.1f}\" text-anchor=\"end\">{2}</text>\n", y,
          y + 4, xml_text(fitting_text(amount_text(static_cast<Int128>(value), facts_.unit), kLeft - 6))));
    }
    text("</g>\n");
  }

  void time_labels(double high) {
    text("<g class=\"axis times\">\n");
    const auto* const step = std::ranges::find_if(kLabelSteps, [&](std::uint64_t columns) {
      return static_cast<double>(columns) * column() >= kLabelRoom;
    });
    const std::uint64_t every = map_.interval * (step == std::end(kLabelSteps) ? 1000 : *step);
    for (std::size_t number = 0; number < map_.columns; ++number) {
      const std::uint64_t time = map_.begin_of(number);
      const double x = column() * static_cast<double>(number);
      if (time % every != 0) continue;
      const bool is_last = x + kLabelRoom / 2.0 > wide() + kGap;
      text(fmt::format(
          "<path d=\"M{0:.1f} {1:.1f}v6\"/><text x=\"{2:.1f}\" y=\"{3:.1f}\" text-anchor=\"{4}\">{5} "
          "s</text>\n",
          x, high, is_last ? wide() + kGap : x, high + 20, is_last ? "end" : "middle", seconds_text(time)));
    }
    text("</g>\n");
  }

  TextOutput& out_;
  const HeatMap& map_;
  const HeatFacts& facts_;
  unsigned width_;
  std::vector<std::uint64_t> classes_;
  double row_;  // px
};

}  // namespace

void write_heat_svg(TextOutput& out, const HeatMap& map, const HeatFacts& facts, unsigned width) {
  Picture(out, map, facts, width).write();
}

}  // namespace tacho::report
