#include "report/views/report/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/output/terminal.h"
#include "report/views/report/call_graph_text.h"

namespace tacho::report {
namespace {

using Kind = Column::Kind;

}  // namespace

void ReportText::write(TextOutput& out, const Entries& entries, std::size_t leader) const {
  // Addresses that are facts of a sample (branch ends, data addresses) are named when they are shown, which
  // one thread must do.
  const bool names_more = facts_->options().mode != ReportMode::Samples;
  format::WorkerPool alone(1);
  format::WorkerPool& pool = names_more ? alone : *pool_;
  const FullValues totals = full_values(entries);
  std::vector<Cell> cells;
  const std::vector<EntryId> rows =
      shown_rows(entries, totals.weights[0], &pool, [&] { cells = cells_of(entries, leader); });
  if (!options_->is_quiet) write_head(out, cells);
  Block block{.entries = &entries, .rows = rows, .cells = cells, .totals = &totals, .pool = &pool};
  if (options_->graph) block.rows = block.rows.subspan(write_graphed(out, block));
  write_plain(out, block);
}

// Writes the rows up to the last one with a graph, and returns their number.
std::size_t ReportText::write_graphed(TextOutput& out, const Block& block) const {
  constexpr std::size_t kMostStrands = 512, kMostRows = 256;  // of one piece; several pieces are in memory
  const Kind weight = options_->has_children ? Kind::Children : Kind::Overhead;
  std::vector<GraphRow> rows;
  rows.reserve(block.rows.size());
  for (const EntryId& row : block.rows) rows.push_back({{&row, 1}, block.entries->value(weight, row, 0)});
  RowGraphs graphs(*options_, *block.entries, tree_->functions(),
                   {block.entries->whole(0, false), block.totals->weights[0]}, rows);
  std::vector<std::optional<CallTree>> trees(block.pool->workers());
  for (std::size_t begin = 0; begin < graphs.end_of_graphs() && !out.is_done();) {
    const std::size_t end = graphs.begin_batch(begin);
    std::vector<std::size_t> begins;  // of pieces
    std::size_t strands = kMostStrands;
    for (std::size_t row = begin; row < end; ++row) {
      strands += graphs.strand_count(row);
      if (strands < kMostStrands && row - begins.back() < kMostRows) continue;
      begins.push_back(row);
      strands = graphs.strand_count(row);
    }
    begins.push_back(end);
    write_pieces(out, *block.pool, begins.size() - 1,
                 [&](std::size_t piece, unsigned worker, TextBuffer& text) {
                   if (!trees[worker]) trees[worker].emplace(*tree_);
                   Last last;
                   for (std::size_t row = begins[piece]; row < begins[piece + 1]; ++row) {
                     write_row(text, block, block.rows[row], last);
                     graphs.write(text, *trees[worker], row);
                   }
                 });
    begin = end;
  }
  return graphs.end_of_graphs();
}

// In pieces of half a megabyte, or of one row if that is longer.
void ReportText::write_plain(TextOutput& out, const Block& block) const {
  constexpr std::size_t kPiece = std::size_t{1} << 19;  // bytes
  constexpr std::size_t kMostRows =
      4096;  // names may be longer than columns, and several pieces are in memory
  std::size_t width = 1;
  for (const Cell& cell : block.cells) width += cell.width + 2;
  const std::size_t size = std::clamp<std::size_t>(kPiece / width, 1, kMostRows);
  write_pieces(out, *block.pool, (block.rows.size() + size - 1) / size,
               [&](std::size_t piece, unsigned, TextBuffer& text) {
                 Last last;
                 const auto from = block.rows.subspan(piece * size);
                 for (const EntryId row : from.first(std::min(size, from.size())))
                   write_row(text, block, row, last);
               });
}

std::vector<Cell> ReportText::cells_of(const Entries& entries, std::size_t leader) const {
  std::vector<Cell> cells;
  std::vector<std::size_t> measured;  // cells whose width depends on the rows
  const auto& shown = columns_->shown;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (std::ranges::find(hidden_, shown[i]) != hidden_.end()) continue;
    if (!cells_.is_of(shown[i], leader, entries.members())) continue;
    const std::size_t asked = i < options_->widths.size() ? options_->widths[i] : 0;
    if (shown[i].kind == Kind::Key && asked == 0) measured.push_back(cells.size());
    cells.push_back(cells_.cell_of(shown[i], entries.members(), asked));
  }
  // Rows below --percent-limit count as well.
  bool has_rows = false;
  for (const EntryId entry : entries.ids()) {
    if (is_hidden(entries, entry)) continue;
    has_rows = true;
    const RowFacts facts = entries.facts(entry);
    for (const std::size_t cell : measured)
      cells[cell].width = std::max(cells[cell].width, cells_.width_of(cells[cell].column, facts));
  }
  for (const std::size_t cell : measured)
    if (!has_rows) cells[cell].width = cells[cell].header.size();
  fit(cells);
  return cells;
}

// For a terminal, if -w sets no widths.
void ReportText::fit(std::vector<Cell>& cells) const {
  constexpr std::size_t kBetween = 2;  // blanks between columns, and before the first one
  if (options_->room <= kBetween || !options_->separator.empty() || !options_->widths.empty()) return;
  std::vector<std::size_t> widths;
  std::vector<bool> are_names;
  for (const Cell& cell : cells) {
    widths.push_back(cell.width);
    const PayloadField* const field =
        cell.column.kind == Kind::Key ? columns_->keys[cell.column.key].field : nullptr;
    const bool is_text = field == nullptr || field->kind == format::FieldKind::Text;
    are_names.push_back(cell.column.kind == Kind::Key && is_text);
  }
  fit_columns(widths, are_names, kBetween, options_->room - kBetween);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i].is_cut = widths[i] < cells[i].width;
    cells[i].width = widths[i];
  }
}

bool ReportText::is_hidden(const Entries& entries, EntryId entry) const {
  if (options_->symbol_filter.empty()) return false;
  return entries.facts(entry).function->shown_name().find(options_->symbol_filter) == std::string_view::npos;
}

std::vector<EntryId> ReportText::shown_rows(const Entries& entries, std::uint64_t total,
                                            format::WorkerPool* pool, std::function<void()> beside) const {
  const Kind kind = options_->has_children ? Kind::Children : Kind::Overhead;
  std::vector<EntryId> rows = entries.sorted(columns_->sorted, pool, std::move(beside));
  if (!options_->symbol_filter.empty() || options_->percent_limit > 0) {
    std::erase_if(rows, [&](EntryId entry) {
      return is_hidden(entries, entry) ||
             percent_of(entries.value(kind, entry, 0), total) < options_->percent_limit;
    });
  }
  if (options_->top != 0 && rows.size() > options_->top) rows.resize(options_->top);
  return rows;
}

FullValues ReportText::full_values(const Entries& entries) const {
  FullValues values;
  for (std::size_t member = 0; member < entries.members(); ++member) {
    values.weights.push_back(entries.whole(member, options_->is_relative));
    if (const Entries* const latency = entries.latency())
      values.latencies.push_back(latency->whole(member, options_->is_relative));
  }
  return values;
}

void ReportText::write_head(TextOutput& out, const std::vector<Cell>& cells) const {
  const std::string& separator = options_->separator;
  out.text("# ");
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) out.text(separator.empty() ? std::string_view("  ") : separator);
    out.text(cells_.header(cells[i]));
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

void ReportText::write_row(TextBuffer& out, const Block& block, EntryId entry, Last& last) const {
  const Entries& entries = *block.entries;
  const std::span<const Cell> cells = block.cells;
  const std::string& separator = options_->separator;
  const std::size_t begin = out.size();
  const RowFacts facts = entries.facts(entry);
  last.values.resize(entries.members());
  last.cells.resize(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (separator.empty()) {
      out.text("  ");
    } else if (i > 0) {
      out.text(separator);
    }
    const std::size_t width = i + 1 < cells.size() ? cells[i].width : 0;
    const Kind kind = cells[i].column.kind;
    if (kind == Kind::Key) {
      out.left(cells_.key(cells[i], facts), width);
      continue;
    }
    for (std::size_t member = 0; member < last.values.size(); ++member)
      last.values[member] = entries.value(kind, entry, member);
    Last::Numbers& numbers = last.cells[i];
    if (numbers.values != last.values) {
      numbers.text = cells_.numbers(cells[i], last.values, block.totals->values_of(kind));
      numbers.values = last.values;
    }
    out.left(numbers.text, width);
  }
  out.cut(begin + std::min(out.size() - begin, cells_.line_room(cells)));
  out.character('\n');
}

}  // namespace tacho::report
