#include "report/views/report/report_cells.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/output/terminal.h"

namespace tacho::report {
namespace {

using Kind = Column::Kind;
constexpr std::size_t kPercentWidth = 8, kLatencyWidth = 7, kNumberWidth = 12;

bool is_percent(Kind kind) { return kind != Kind::Samples && kind != Kind::Period && kind != Kind::Key; }

}  // namespace

double percent_of(std::uint64_t part, std::uint64_t total) {
  return total == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(total);
}

bool ReportCells::is_of(const Column& column, std::size_t leader, std::size_t members) const {
  if (column.kind != Kind::Key) return true;
  const auto& event = columns_->keys[column.key].event;
  return !event || (*event >= leader && *event < leader + members);
}

Cell ReportCells::cell_of(const Column& column, std::size_t members, std::size_t given_width) const {
  Cell cell{.column = column, .header = header_of(column, *columns_, options_->has_children)};
  if (column.kind == Kind::Key) {
    const KeyUse& use = columns_->keys[column.key];
    cell.width = given_width != 0 ? given_width : std::max(use.header.size(), use.least_width);
    cell.is_right = use.field != nullptr;
  } else {
    const std::size_t percent = column.kind == Kind::LatencyChildren ? kLatencyWidth : kPercentWidth;
    const std::size_t usual = is_percent(column.kind) ? percent : kNumberWidth;
    cell.number_width = given_width != 0 ? given_width : usual;
    cell.width = std::max(
        {cell.number_width, members > 1 || options_->has_groups ? usual * members : 0, cell.header.size()});
    cell.is_right = true;
  }
  return cell;
}

std::size_t ReportCells::width_of(const Column& column, const RowFacts& row) const {
  const KeyUse& use = columns_->keys[column.key];
  const KeyShow show{use, *facts_};
  return use.key->width != nullptr ? use.key->width(show, row) : use.key->show(show, row).size();
}

std::string ReportCells::header(const Cell& cell) const {
  std::string text = cell.header.substr(0, cell.is_right ? std::string::npos : cell.width);
  if (text.size() < cell.width) text.insert(cell.is_right ? 0 : text.size(), cell.width - text.size(), ' ');
  return text;
}

std::string ReportCells::numbers(const Cell& cell, std::span<const std::uint64_t> values,
                                 std::span<const std::uint64_t> totals) const {
  // With a separator, numbers are not padded.
  const std::size_t width = options_->separator.empty() ? cell.number_width : 0;
  if (cell.column.kind == Kind::Children && !options_->has_children)
    return fmt::format(" {:>{}}", "N/A", std::max<std::size_t>(cell.number_width, 1) - 1);
  // As in perf, not aligned.
  if (cell.column.kind == Kind::LatencyChildren && !options_->has_children) return " N/A";
  std::string text;
  for (std::size_t member = 0; member < values.size(); ++member) {
    if (!is_percent(cell.column.kind)) {
      text += fmt::format(" {:{}}", values[member], width < 1 ? 1 : width - 1);
      continue;
    }
    const double share = percent_of(values[member], totals[member]);
    const std::string shown = fmt::format(" {:{}.2f}%", share, width < 2 ? 1 : width - 2);
    text += options_->has_colour && options_->separator.empty() ? coloured_share(share, shown) : shown;
  }
  return text;
}

std::size_t ReportCells::line_room(std::span<const Cell> cells) const {
  constexpr std::size_t kBetween = 2, kBehind = 3, kVerbose = 3 + 16;
  constexpr std::size_t kColours =
      std::size_t{8} * 28;  // bytes for colours of all eight coloured columns, shown or not
  std::size_t room =
      kBehind + (facts_->options().is_verbose ? kVerbose : 0) + (options_->separator.empty() ? kColours : 0);
  for (const Cell& cell : cells) room += cell.width + (&cell == &cells.front() ? 0 : kBetween);
  return room;
}

std::string ReportCells::key(const Cell& cell, const RowFacts& row) const {
  using Fit = SortKey::Fit;
  const KeyUse& use = columns_->keys[cell.column.key];
  const KeyShow show{use, *facts_};
  if (cell.is_cut) return cut_in_the_middle(use.key->show(show, row), cell.width);
  std::string text =
      use.key->show_in != nullptr ? use.key->show_in(show, row, cell.width) : use.key->show(show, row);
  if (!options_->separator.empty()) std::ranges::replace(text, options_->separator.front(), '.');
  const Fit fit = use.key->fit;
  if (fit != Fit::Whole && fit != Fit::Padded && text.size() > cell.width) text.resize(cell.width);
  if (fit == Fit::Cut || fit == Fit::Padded) text.resize(std::max(cell.width, text.size()), ' ');
  if (fit == Fit::Right) text.insert(0, cell.width - text.size(), ' ');
  return text;
}

}  // namespace tacho::report
