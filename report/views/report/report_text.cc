#include "report/views/report/report_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/output/colour.h"
#include "report/views/report/call_graph_text.h"

namespace tacho::report {
namespace {

using Kind = Column::Kind;
constexpr std::size_t kPercentWidth = 8, kNumberWidth = 12;

bool is_percent(Kind kind) { return kind != Kind::Samples && kind != Kind::Period && kind != Kind::Key; }

}  // namespace

void ReportText::write(TextOutput& out, const Entries& entries, std::size_t leader) const {
  const std::vector<Cell> cells = cells_of(entries, leader);
  if (!options_->is_quiet) write_head(out, cells);
  std::vector<std::uint32_t> rows = shown_rows(entries);
  if (options_->graph) return write_graphs(out, entries, rows, cells);
  write_plain(out, entries, rows, cells);
}

std::vector<ReportText::Cell> ReportText::cells_of(const Entries& entries, std::size_t leader) const {
  std::vector<Cell> cells;
  const auto& shown = columns_->shown;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (std::ranges::find(hidden_, shown[i]) != hidden_.end()) continue;
    Cell cell{.column = shown[i], .header = header_of(shown[i], *columns_, options_->has_children)};
    const std::size_t asked = i < options_->widths.size() ? options_->widths[i] : 0;
    if (shown[i].kind == Kind::Key) {
      const KeyUse& use = columns_->keys[shown[i].key];
      if (use.event && (*use.event < leader || *use.event >= leader + entries.members())) continue;
      cell.width = asked != 0 ? asked : key_width(entries, use);
      cell.is_right = use.key->fit == SortKey::Fit::Right;
    } else {
      const std::size_t usual = is_percent(shown[i].kind) ? kPercentWidth : kNumberWidth;
      cell.number_width = asked != 0 ? asked : usual;
      cell.width = std::max({cell.number_width, usual * entries.members(), cell.header.size()});
      cell.is_right = true;
    }
    cells.push_back(std::move(cell));
  }
  return cells;
}

// Rows that are hidden by --percent-limit count as well.
std::size_t ReportText::key_width(const Entries& entries, const KeyUse& use) const {
  std::size_t width = std::max(use.header.size(), use.least_width);
  const KeyShow show{use, *facts_};
  const auto& key = *use.key;
  for (std::uint32_t entry = 0; entry < entries.size(); ++entry) {
    if (is_hidden(entries, entry)) continue;
    const RowFacts row = entries.facts(entry);
    width = std::max(width, key.width != nullptr ? key.width(show, row) : key.show(show, row).size());
  }
  return width;
}

bool ReportText::is_hidden(const Entries& entries, std::uint32_t entry) const {
  if (options_->symbol_filter.empty()) return false;
  return entries.facts(entry).function->name.find(options_->symbol_filter) == std::string_view::npos;
}

std::vector<std::uint32_t> ReportText::shown_rows(const Entries& entries) const {
  std::vector<std::uint32_t> rows;
  const Kind kind = options_->has_children ? Kind::Children : Kind::Overhead;
  for (const std::uint32_t entry : entries.sorted(columns_->sorted)) {
    if (options_->top != 0 && rows.size() == options_->top) break;
    if (is_hidden(entries, entry)) continue;
    if (percent(entries, kind, entry, 0) < options_->percent_limit) continue;
    rows.push_back(entry);
  }
  return rows;
}

std::uint64_t ReportText::total(const Entries& entries, std::size_t member) const {
  const Weight& all = entries.total(member);
  const Weight& filtered = entries.filtered(member);
  const Weight shown{all.period - (options_->is_relative ? filtered.period : 0),
                     all.samples - (options_->is_relative ? filtered.samples : 0)};
  return all.period == 0 ? shown.samples : shown.period;
}

double ReportText::percent(const Entries& entries, Kind kind, std::uint32_t entry, std::size_t member) const {
  const auto all = static_cast<double>(total(entries, member));
  return all == 0 ? 0.0 : 100.0 * static_cast<double>(entries.value(kind, entry, member)) / all;
}

void ReportText::write_head(TextOutput& out, const std::vector<Cell>& cells) const {
  const std::string& separator = options_->separator;
  out.text("# ");
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) out.text(separator.empty() ? std::string_view("  ") : separator);
    cells[i].is_right ? out.padded(cells[i].header, cells[i].width)
                      : out.left(std::string_view(cells[i].header).substr(0, cells[i].width), cells[i].width);
  }
  out.character('\n');
  if (!separator.empty()) return;
  out.text("# ");
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) out.text("  ");
    out.fill('.', cells[i].width);
  }
  out.text("\n#\n");
}

std::string ReportText::weight_cell(const Entries& entries, std::uint32_t entry, const Cell& cell) const {
  const Kind kind = cell.column.kind;
  // With a separator numbers take the room they need.
  const std::size_t width = options_->separator.empty() ? cell.number_width : 0;
  std::string text;
  for (std::size_t member = 0; member < entries.members(); ++member) {
    if (!is_percent(kind)) {
      text += fmt::format(" {:{}}", entries.value(kind, entry, member), width < 1 ? 1 : width - 1);
      continue;
    }
    const double share = percent(entries, kind, entry, member);
    const std::string shown = fmt::format(" {:{}.2f}%", share, width < 2 ? 1 : width - 2);
    text += options_->has_colour ? coloured_share(share, shown) : shown;
  }
  return text;
}

std::string ReportText::key_cell(const Entries& entries, std::uint32_t entry, const Cell& cell) const {
  using Fit = SortKey::Fit;
  const KeyUse& use = columns_->keys[cell.column.key];
  std::string text = use.key->show({use, *facts_}, entries.facts(entry));
  if (!options_->separator.empty()) std::ranges::replace(text, options_->separator.front(), '.');
  const Fit fit = use.key->fit;
  if (fit != Fit::Whole && text.size() > cell.width) text.resize(cell.width);
  if (fit == Fit::Cut) text.resize(cell.width, ' ');
  if (fit == Fit::Right) text.insert(0, cell.width - text.size(), ' ');
  return text;
}

void ReportText::write_row(TextOutput& out, const Entries& entries, std::uint32_t entry,
                           const std::vector<Cell>& cells) const {
  const std::string& separator = options_->separator;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (separator.empty()) {
      out.text("  ");
    } else if (i > 0) {
      out.text(separator);
    }
    const bool is_key = cells[i].column.kind == Kind::Key;
    const std::string text =
        is_key ? key_cell(entries, entry, cells[i]) : weight_cell(entries, entry, cells[i]);
    i + 1 < cells.size() ? out.left(text, cells[i].width) : out.text(text);
  }
  out.character('\n');
}

void ReportText::write_plain(TextOutput& out, const Entries& entries, const std::vector<std::uint32_t>& rows,
                             const std::vector<Cell>& cells) const {
  for (const std::uint32_t row : rows) {
    write_row(out, entries, row, cells);
    out.line_end();
  }
}

// The parts of call chains are told for as many rows at a time as fit into some megabytes.
void ReportText::write_graphs(TextOutput& out, const Entries& entries, const std::vector<std::uint32_t>& rows,
                              const std::vector<Cell>& cells) const {
  constexpr std::size_t kMostStrands = std::size_t{1} << 21;
  const CallGraphText text(*options_->graph, functions_->functions(), options_->names);
  const CallTreeLimit limit = graph_limit(*options_->graph, total(entries, 0));
  CallTree tree(functions_->functions(), options_->graph->key);
  const Kind kind = options_->has_children ? Kind::Children : Kind::Overhead;
  GraphedRow graphed{.event_total = total(entries, 0), .leaves_out_first = options_->leaves_out_first};
  if (!options_->separator.empty()) graphed.separator = options_->separator;

  for (std::size_t first = 0; first < rows.size();) {
    std::vector<std::uint32_t> drawn;
    std::size_t end = first, strands = 0;
    while (end < rows.size() && (end == first || strands < kMostStrands)) {
      const std::uint32_t row = rows[end++];
      const std::uint64_t weight = entries.value(kind, row, 0);
      if (limit.share == CallTreeLimit::Share::OfTotal && weight < limit.least(weight)) continue;
      drawn.push_back(row);
      strands += entries.strand_count(row);
    }
    auto lists = entries.strands(drawn);
    std::size_t next = 0;
    for (; first < end; ++first) {
      write_row(out, entries, rows[first], cells);
      if (next < drawn.size() && drawn[next] == rows[first]) {
        graphed.row_total = entries.value(kind, rows[first], 0);
        tree.build(lists[next], limit);
        text.write(out, tree, graphed);
        lists[next++] = {};
      }
      out.line_end();
    }
  }
}

}  // namespace tacho::report
