#include "report/views/heatmap/heat_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/expression.h"
#include "report/output/field_sinks.h"
#include "report/output/svg_text.h"
#include "report/output/text_output.h"
#include "report/query/expressions.h"
#include "report/samples/filter.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;  // ns
constexpr std::uint64_t kEver = std::numeric_limits<std::uint64_t>::max();

struct Scale {
  double size;
  std::string_view name;
};
constexpr Scale kTimes[] = {{1e9, " s"}, {1e6, " ms"}, {1e3, " us"}, {1, " ns"}};
constexpr Scale kSizes[] = {
    {1099511627776., " TiB"}, {1073741824, " GiB"}, {1048576, " MiB"}, {1024, " KiB"}, {1, " B"}};
constexpr Scale kNumbers[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};

std::string scaled(double value, std::span<const Scale> scales) {
  const auto scale = std::ranges::find_if(
      scales, [&](const Scale& one) { return std::abs(value) >= one.size * 0.9995 || one.size == 1; });
  return fmt::format("{:.3g}{}", value / scale->size, scale->name);
}

// Both ends of "A..B"; one where there is no "..".
struct Sides {
  std::string_view first, last;
  bool is_range = false;
};
Sides sides_of(std::string_view text) {
  const auto dots = text.find("..");
  if (dots == std::string_view::npos) return {text, {}, false};
  return {text.substr(0, dots), text.substr(dots + 2), true};
}

Error wrong_box(std::string_view text, const HeatFacts& facts) {
  return use_error("--box: '" + std::string(text) +
                   "' is no box; it is TIME,VALUE, each a point or a range, as " +
                   (facts.period != 0 ? "12..13,0.34..0.36" : "12.5..12.6,1024..2047") +
                   "; the tooltips of the map have the words for each box");
}

// Seconds with up to nine decimals -> ns.
std::optional<std::uint64_t> seconds_in(std::string_view text) {
  if (text.find_first_of(" ,%") != std::string_view::npos || text.empty()) return std::nullopt;
  const auto range = parse_times(std::string(text) + ",", {});
  return range ? std::optional(range->front().first) : std::nullopt;
}

// "-5", "1.5ms", "4k" in what the field counts; a part of it is rounded `up` or down.
std::optional<std::int64_t> value_in(std::string_view text, std::string_view unit, bool up) {
  const auto parsed = cli::parse_expression("", text);
  if (!parsed) return std::nullopt;
  const bool is_negative = parsed->root().operation == cli::Operation::Minus;
  if (parsed->nodes.size() != (is_negative ? 2U : 1U)) return std::nullopt;
  const cli::ExpressionNode& node = parsed->nodes.front();
  std::uint64_t size = 1;
  if (node.unit != cli::NumberUnit::None) {
    const auto of_field = field_unit(unit);
    if (of_field && of_field->kind != node.unit) return std::nullopt;
    if (of_field) size = of_field->size;
  }
  if (node.operation == cli::Operation::Whole && size == 1) {
    if (is_negative)
      return node.whole >= std::uint64_t{1} << 63 ? kLowest : -static_cast<std::int64_t>(node.whole);
    return static_cast<std::int64_t>(std::min<std::uint64_t>(node.whole, kHighest));
  }
  double number = 0;
  if (node.operation == cli::Operation::Whole) {
    number = static_cast<double>(node.whole);
  } else if (node.operation == cli::Operation::Real) {
    number = node.real;
  } else {
    return std::nullopt;
  }
  number = (is_negative ? -number : number) / static_cast<double>(size);
  number = up ? std::ceil(number) : std::floor(number);
  if (!(std::abs(number) < 9.2e18)) return number > 0 ? kHighest : kLowest;
  return static_cast<std::int64_t>(number);
}

}  // namespace

std::string seconds_text(std::uint64_t time) {
  std::string text = fmt::format("{}.{:09}", time / kSecond, time % kSecond);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string amount_text(std::int64_t value, std::string_view unit) {
  const auto known = field_unit(unit);
  if (value == 0) return "0";
  if (!known) {
    const std::string number = scaled(static_cast<double>(value), kNumbers);
    return unit.empty() ? number : number + " " + printable(unit);
  }
  const double amount = static_cast<double>(value) * static_cast<double>(known->size);
  return known->kind == cli::NumberUnit::Time ? scaled(amount, kTimes) : scaled(amount, kSizes);
}

std::string values_text(std::int64_t low, std::int64_t high, const HeatFacts& facts) {
  if (low == high) return amount_text(low, facts.unit);
  const std::string last = high == kHighest ? "any" : amount_text(high + 1, facts.unit);
  return (low == kLowest ? "any" : amount_text(low, facts.unit)) + " to " + last;
}

std::string box_words(const HeatBox& box, const HeatFacts& facts) {
  const auto seconds = [](std::uint64_t time) { return seconds_text(time); };
  std::string text =
      (box.from == 0 ? "" : seconds(box.from)) + ".." + (box.until == kEver ? "" : seconds(box.until));
  if (facts.period != 0)
    return text + "," + seconds(static_cast<std::uint64_t>(box.low)) + ".." +
           seconds(static_cast<std::uint64_t>(box.high) + 1);
  return text + "," + (box.low == kLowest ? "" : std::to_string(box.low)) + ".." +
         (box.high == kHighest ? "" : std::to_string(box.high));
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
                     map.columns == 1 ? "" : "s", amount_text(static_cast<std::int64_t>(map.interval), "ns"),
                     map.rows.size(), map.rows.size() == 1 ? "" : "s");
}

Result<BoxQuestion> parse_box(std::string_view text, const HeatFacts& facts) {
  const auto comma = text.find(',');
  if (comma == std::string_view::npos) return wrong_box(text, facts);
  const Sides times = sides_of(text.substr(0, comma)), values = sides_of(text.substr(comma + 1));
  BoxQuestion question;
  HeatBox& box = question.box;
  question.is_time_point = !times.is_range;
  question.is_value_point = !values.is_range;
  if (!times.first.empty() || question.is_time_point) {
    const auto from = seconds_in(times.first);
    if (!from) return wrong_box(text, facts);
    box.from = *from;
  }
  if (!times.last.empty()) {
    const auto until = seconds_in(times.last);
    if (!until) return wrong_box(text, facts);
    box.until = *until;
  }
  if (facts.period != 0) {
    const auto low = values.first.empty() ? std::optional<std::uint64_t>(0) : seconds_in(values.first);
    const auto high =
        values.last.empty() ? std::optional<std::uint64_t>(facts.period) : seconds_in(values.last);
    if (!low || !high || *low >= facts.period || *high > facts.period || *high == 0)
      return wrong_box(text, facts);
    box.low = static_cast<std::int64_t>(*low);
    box.high = static_cast<std::int64_t>(*high - 1);
  } else {
    if (!values.first.empty() || question.is_value_point) {
      const auto low = value_in(values.first, facts.unit, true);
      if (!low) return wrong_box(text, facts);
      box.low = *low;
    }
    if (!values.last.empty()) {
      const auto high = value_in(values.last, facts.unit, false);
      if (!high) return wrong_box(text, facts);
      box.high = *high;
    }
  }
  if (box.from >= box.until || box.low > box.high)
    return use_error("--box: '" + std::string(text) + "': the first end of a range is the lower one");
  return question;
}

Result<HeatBox> find_box(const BoxQuestion& question, const HeatMap& map, const HeatFacts& facts) {
  HeatBox box = question.box;
  if (map.is_empty()) return box;
  if (question.is_time_point) {
    if (box.from < map.begin || (box.from - map.begin) / map.interval >= map.columns)
      return use_error("--box: " + seconds_text(box.from) + " s is outside of the map, which goes from " +
                       seconds_text(map.begin) + " s to " +
                       seconds_text(box_of(map, map.columns - 1, 0).until) + " s");
    const HeatBox found = box_of(map, (box.from - map.begin) / map.interval, 0);
    box.from = found.from;
    box.until = found.until;
  }
  if (question.is_value_point) {
    const auto row = std::ranges::find_if(
        map.rows, [&](const Bucket& one) { return box.low >= one.low && box.low <= one.high; });
    if (row == map.rows.end())
      return use_error("--box: " + amount_text(box.low, facts.unit) +
                       " is outside of the map, which goes from " + std::to_string(map.rows.front().low) +
                       " to " + std::to_string(map.rows.back().high));
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

// With as much between times as they need.
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

// Colours of the 256 that terminals have, from dark blue to yellow: lighter for more, with a shade that is
// denser.
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
  // A box `width` columns wide. Of one class after another escapes are said once.
  void write(TextBuffer& out, std::uint64_t count, std::size_t width) {
    if (count == 0) return out.blanks(width);
    const std::size_t number = class_of(count, classes_);
    if (form_ == HeatCells::Digits) {
      out.character(static_cast<char>('1' + number));
      return out.blanks(width - 1);
    }
    // Few classes are as far apart in colour as many.
    const std::size_t last = classes_.size() - 1;
    const std::size_t shade = last == 0 ? std::size(kShades) - 1 : number * (std::size(kShades) - 1) / last;
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
    const std::uint64_t last = i + 1 < cells.classes().size() ? cells.classes()[i + 1] - 1 : map.most;
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
    out.character('\n');
    out.line_end();
  }
  const HeatAxis axis = heat_axis(map, wide);
  out.text(axis.marks + "\n" + axis.times + "\n");
  write_legend(out, map, cells);
  const auto fullest = static_cast<std::size_t>(std::ranges::max_element(map.counts) - map.counts.begin());
  const HeatBox box = box_of(map, fullest / map.rows.size(), fullest % map.rows.size());
  out.text("what stands out in the fullest box:\n  " + facts.command + " --box " + box_words(box, facts) +
           "\n");
}

void write_heat_json(TextOutput& out, const HeatMap& map, const HeatFacts& facts) {
  JsonFields to(out);

  to.text("field", facts.name);
  if (!facts.unit.empty()) to.text("unit", facts.unit);
  if (facts.period != 0) to.json("period", seconds_text(facts.period));
  to.number("samples", map.total);
  const auto seconds = [&to](std::string_view name, std::uint64_t time) {
    to.json(name, seconds_text(time));
  };
  if (!map.is_empty()) {
    seconds("begin", map.begin);
    seconds("interval", map.interval);
  }
  to.number("columns", map.columns);
  to.begin_list("rows");
  for (const Bucket& row : map.rows) {
    to.begin_object({});
    to.signed_number("low", row.low);
    to.signed_number("high", row.high);
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
      to.text("box", box_words(box_of(map, column, row), facts));
      to.end_object();
    }
    out.line_end();
  }
  to.end_list();
  to.finish();
  out.character('\n');
}

}  // namespace tacho::report
