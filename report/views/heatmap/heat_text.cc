#include "report/views/heatmap/heat_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "report/output/field_sinks.h"
#include "report/output/svg_text.h"

namespace tacho::report {
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
        classes_(count_classes(map, facts, form == HeatCells::Digits ? kDigits : std::size(kShades))) {}

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
  static constexpr std::size_t kNone = ~std::size_t{0}, kDigits = 9;
  HeatCells form_;
  std::vector<std::uint64_t> classes_;
  std::size_t last_ = kNone;  // shade
};

std::string fitted(std::string text, std::size_t width) {
  text.resize(std::min(text.size(), width));
  return std::string(width - text.size(), ' ') + text;
}

// Times below the boxes, which are `wide` columns each, with as much between them as they need.
void write_times(TextOutput& out, const HeatMap& map, std::size_t wide) {
  constexpr std::uint64_t kSteps[] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
  const std::size_t room = seconds_text(map.begin_of(map.columns - 1)).size() + 5;
  const auto* const step =
      std::ranges::find_if(kSteps, [&](std::uint64_t columns) { return columns * wide >= room; });
  const std::uint64_t every = map.interval * (step == std::end(kSteps) ? 1000 : *step);
  std::string marks(kTextMargin - 1, ' '), times;
  marks += '+';
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
  out.text(marks + "\n" + times + "\n");
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
  constexpr std::size_t kWidest = 6;
  const std::size_t left = std::max(room, kTextMargin) - kTextMargin;
  const std::size_t wide = std::clamp<std::size_t>(left / map.columns, 1, kWidest);
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
  write_times(out, map, wide);
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
