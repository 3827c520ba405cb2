#include "report/views/tui/heat_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/message_text.h"
#include "report/output/text_output.h"
#include "report/views/heatmap/heat_box.h"

namespace tacho::report {
namespace {

// The limits of the grid, which is merged to the size of the screen.
constexpr std::size_t kMostColumns = 400, kMostRows = 64, kFewestRows = 10;
constexpr std::size_t kBelow = 4;  // lines below the map: ticks, times, the box, keys
constexpr std::ptrdiff_t kPage = 10;

}  // namespace

Result<std::unique_ptr<HeatView>> HeatView::read(CaptureReadings& readings, const SampleChoice& choice,
                                                 const HeatRequest& request) {
  auto session = readings.open_session([&](SessionOptions& options) {
    options.wants_stacks = choice.looks_at_functions() && choice.looks_at_callers;
  });
  if (!session) return std::move(session.error());
  HeatSource source;
  if (auto found = source.find_events(request, *session); !found) return std::move(found.error());
  MapSink sink(*session, source, text_scale(source, kMostColumns, kMostRows));
  ChosenSamples chosen(*session, choice, sink);
  if (auto found = chosen.find_box(); !found) return std::move(found.error());
  std::unique_ptr<HeatView> view(new HeatView(choice, request));
  if (!readings.run_session(*session, chosen)) view->note_ = ", reading was stopped";
  view->grid_.emplace(sink.grid());
  view->map_ = view->grid_->finish();
  if (view->map_.is_empty()) {
    const std::string timeless = sink.samples_without_times();
    return Error{timeless.empty() ? "no sample of these rows has the value" : timeless};
  }
  HeatFacts& facts = view->facts_;
  facts.period = source.period();
  facts.name = printable(source.name());
  facts.unit = source.unit();
  view->request_.period = facts.period;
  facts.title = facts.period != 0 ? "offset in each " + period_text(facts.period) : facts.name;
  const std::string event = source.event_name().empty() ? request.event : source.event_name();
  if (!event.empty()) facts.title += " of " + printable(event);
  // The cursor starts at the box with most samples.
  view->cursor_ = {view->map_.columns, view->map_.rows.size()};
  return view;
}

// Merges the grid to the size of the screen. The cursor keeps its time and value.
void HeatView::fit(ScreenSize size) {
  height_ = size.height > kBelow + 1 ? size.height - kBelow - 1 : 1;
  const std::size_t room = size.width > kTextMargin + kFewestRows ? size.width - kTextMargin : kFewestRows;
  if (fitted_ == size) return;
  fitted_ = size;
  const bool is_first = cursor_.column >= map_.columns || cursor_.row >= map_.rows.size();
  const HeatBox before = is_first ? HeatBox() : box_of(map_, cursor_.column, cursor_.row);
  map_ =
      grid_->finish(std::clamp(room, kFewestRows, kMostColumns), std::clamp(height_, kFewestRows, kTextRows));
  wide_ = heat_column_width(map_, size.width);
  mark_.reset();
  if (is_first) {
    const auto fullest =
        static_cast<std::size_t>(std::ranges::max_element(map_.counts) - map_.counts.begin());
    cursor_ = {fullest / map_.rows.size(), fullest % map_.rows.size()};
    return;
  }
  cursor_.column = before.from <= map_.begin
                       ? 0
                       : std::min<std::size_t>((before.from - map_.begin) / map_.interval, map_.columns - 1);
  cursor_.row = 0;
  while (cursor_.row + 1 < map_.rows.size() && map_.rows[cursor_.row].high < before.low) ++cursor_.row;
}

std::pair<HeatView::Cell, HeatView::Cell> HeatView::corners() const {
  const Cell other = mark_.value_or(cursor_);
  return {{std::min(other.column, cursor_.column), std::min(other.row, cursor_.row)},
          {std::max(other.column, cursor_.column), std::max(other.row, cursor_.row)}};
}

std::uint64_t HeatView::samples_in(Cell first, Cell last) const {
  std::uint64_t samples = 0;
  for (std::size_t column = first.column; column <= last.column; ++column)
    for (std::size_t row = first.row; row <= last.row; ++row) samples += map_.at(column, row);
  return samples;
}

BoxChoice HeatView::box() const {
  const auto [first, last] = corners();
  HeatBox box = box_of(map_, first.column, first.row);
  const HeatBox end = box_of(map_, last.column, last.row);
  box.until = end.until;
  box.high = end.high;
  return {request_, box, box_text(box, facts_)};
}

Result<TextPage> HeatView::explanation(CaptureReadings& readings) const {
  auto session = readings.open_session([](SessionOptions& options) { options.wants_stacks = true; });
  if (!session) return std::move(session.error());
  HeatSource source;
  if (auto found = source.find_events(request_, *session); !found) return std::move(found.error());
  const BoxChoice chosen_box = box();
  BoxSink sink(*session, source, chosen_box.box);
  ChosenSamples chosen(*session, choice_, sink);
  if (auto found = chosen.find_box(); !found) return std::move(found.error());
  if (!readings.run_session(*session, chosen)) return Error{"reading was stopped: x reads again"};
  const auto findings = sink.findings(Names::Safe);
  auto lines = written_lines([&](TextOutput& out) {
    write_box_text(out, facts_, BoxFacts{chosen_box.box, {}, {}, 0, 0}, sink.all(), findings);
  });
  return TextPage("More frequent in the box than outside", std::move(lines));
}

void HeatView::move(std::ptrdiff_t columns, std::ptrdiff_t rows) {
  cursor_ = {moved(cursor_.column, columns, map_.columns), moved(cursor_.row, rows, map_.rows.size())};
}

HeatView::Flow HeatView::on_key(const KeyPress& press) {
  switch (press.key) {
    case Key::Up:
    case Key::WheelUp:
      move(0, 1);
      break;
    case Key::Down:
    case Key::WheelDown:
      move(0, -1);
      break;
    case Key::Left:
      move(-1, 0);
      break;
    case Key::Right:
      move(1, 0);
      break;
    case Key::PageUp:
      move(-kPage, 0);
      break;
    case Key::PageDown:
      move(kPage, 0);
      break;
    case Key::Home:
      cursor_.column = 0;
      break;
    case Key::End:
      cursor_.column = map_.columns - 1;
      break;
    case Key::Enter:
      return Flow::Chosen;
    case Key::Click:
    case Key::DoubleClick: {
      const std::size_t line = top_ + press.row - 1;
      const std::size_t column =
          press.column < kTextMargin ? map_.columns : (press.column - kTextMargin) / wide_;
      if (press.row == 0 || press.row > height_ || line >= map_.rows.size() || column >= map_.columns) break;
      const Cell at{column, map_.rows.size() - 1 - line};
      if (std::exchange(cursor_, at) == at) return Flow::Chosen;
      break;
    }
    case Key::Escape:
      if (mark_) {
        mark_.reset();
        break;
      }
      return Flow::Leave;
    default:
      if (press.is('q')) return Flow::Leave;
      if (press.is(' '))
        mark_ = mark_ ? std::nullopt : std::optional(cursor_);
      else if (press.is('v'))
        return Flow::Samples;
      else if (press.is('x'))
        return Flow::Explain;
      else
        return Flow::Unknown;
  }
  return Flow::Stay;
}

void HeatView::draw(Frame& frame) {
  fit(frame.size);
  const std::size_t rows = map_.rows.size(), shown = std::min(rows, height_);
  const std::string numbers =
      fmt::format(": {} {}, columns of {}{}", with_commas(static_cast<double>(map_.total)),
                  cli::noun_after(map_.total, "sample"), amount_text(map_.interval, "ns"), note_);
  const std::size_t room = frame.size.width - std::min<std::size_t>(numbers.size(), frame.size.width);
  frame.bar(0, Style::Bar, fit_middle(facts_.title, std::max<std::size_t>(room, 1)) + numbers);
  const auto classes = count_classes(map_, facts_, kHeatDigits);
  const auto [first, last] = corners();
  top_ = top_showing(rows - 1 - cursor_.row, top_, shown, rows);  // high values are at the top
  for (std::size_t line = 0; line < shown; ++line) {
    const std::size_t row = rows - 1 - top_ - line, at = 1 + line;
    frame.put_text(at, 0, Style::Normal,
                   fmt::format("{:>10} |", fit_begin(amount_text(map_.rows[row].low, facts_.unit), 10)));
    for (std::size_t column = 0; column < map_.columns; ++column) {
      const std::uint64_t count = map_.at(column, row);
      const bool is_chosen =
          column >= first.column && column <= last.column && row >= first.row && row <= last.row;
      if (count == 0 && !is_chosen) continue;
      const std::size_t number = count == 0 ? 0 : class_of(count, classes);
      // Spreads the colours over the classes, few or many.
      const std::size_t heat =
          classes.size() <= 1 ? kHeatStyles - 1 : number * (kHeatStyles - 1) / (classes.size() - 1);
      std::string text(wide_, ' ');
      if (count != 0) text[0] = static_cast<char>('1' + number);
      frame.put_text(at, kTextMargin + column * wide_, is_chosen ? Style::Box : heat_style(heat), text);
    }
  }
  const HeatAxis axis = heat_axis(map_, wide_);
  frame.put_text(1 + shown, 0, Style::Quiet, axis.marks);
  frame.put_text(2 + shown, 0, Style::Quiet, axis.times);
  const std::uint64_t samples = samples_in(first, last);
  frame.put_text(3 + shown, 0, Style::Heading,
                 fmt::format("{}: {} sample{}", box().text, with_commas(static_cast<double>(samples)),
                             samples == 1 ? "" : "s"));
  frame.last_line("h: help  Enter: count this box  v: its samples  Space: mark  q: back");
}

}  // namespace tacho::report
