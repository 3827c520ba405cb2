#include "report/views/report/report_text.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "report/output/fit.h"
#include "report/views/report/row_graphs.h"

namespace tacho::report {
namespace {

using Kind = Column::Kind;

}  // namespace

void ReportText::write(TextOutput& out, const Entries& entries, std::size_t leader) const {
  // Places that are facts of a sample (ends of branches, data addresses) are named when they are shown, which
  // is for one thread.
  const bool names_more = facts_->options().mode != ReportMode::Samples;
  format::WorkerPool alone(1);
  format::WorkerPool& pool = names_more ? alone : *pool_;
  const FullValues totals = full_values(entries);
  std::vector<Cell> cells;
  const std::vector<std::uint32_t> rows =
      shown_rows(entries, totals.weights[0], &pool, [&] { cells = cells_of(entries, leader); });
  if (!options_->is_quiet) write_head(out, cells);
  Block block{.entries = &entries, .rows = rows, .cells = cells, .totals = &totals, .pool = &pool};
  if (options_->graph) block.rows = block.rows.subspan(write_graphed(out, block));
  write_plain(out, block);
}

// Writes the rows up to the last that has a graph, and returns how many they are.
std::size_t ReportText::write_graphed(TextOutput& out, const Block& block) const {
  constexpr std::size_t kMostStrands = 512, kMostRows = 256;  // of a piece; several are in memory
  const Kind weight = options_->has_children ? Kind::Children : Kind::Overhead;
  std::vector<GraphRow> rows;
  rows.reserve(block.rows.size());
  for (const std::uint32_t& row : block.rows)
    rows.push_back({{&row, 1}, block.entries->value(weight, row, 0)});
  RowGraphs graphs(*options_, *block.entries, tree_->functions(),
                   {block.entries->whole(0, false), block.totals->weights[0]}, rows);
  std::vector<std::optional<CallTree>> trees(block.pool->workers());
  for (std::size_t begin = 0; begin < graphs.end() && !out.is_done();) {
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
  return graphs.end();
}

// In pieces of half a megabyte and of one row at least.
void ReportText::write_plain(TextOutput& out, const Block& block) const {
  // Names can be as long as a capture makes them, and several pieces are in memory.
  constexpr std::size_t kPiece = std::size_t{1} << 19, kMostRows = 4096;  // bytes
  std::size_t width = 1;
  for (const Cell& cell : block.cells) width += cell.width + 2;
  const std::size_t size = std::clamp<std::size_t>(kPiece / width, 1, kMostRows);
  write_pieces(out, *block.pool, (block.rows.size() + size - 1) / size,
               [&](std::size_t piece, unsigned, TextBuffer& text) {
                 Last last;
                 const auto from = block.rows.subspan(piece * size);
                 block.entries->walk(from.first(std::min(size, from.size())),
                                     [&](std::uint32_t row) { write_row(text, block, row, last); });
               });
}

std::vector<Cell> ReportText::cells_of(const Entries& entries, std::size_t leader) const {
  std::vector<Cell> cells;
  std::vector<std::size_t> measured;  // numbers of cells
  const auto& shown = columns_->shown;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (std::ranges::find(hidden_, shown[i]) != hidden_.end()) continue;
    if (!cells_.is_of(shown[i], leader, entries.members())) continue;
    const std::size_t asked = i < options_->widths.size() ? options_->widths[i] : 0;
    if (shown[i].kind == Kind::Key && asked == 0) measured.push_back(cells.size());
    cells.push_back(cells_.cell_of(shown[i], entries.members(), asked));
  }
  // Rows that are hidden by --percent-limit count as well.
  bool has_rows = false;
  entries.walk([&](std::uint32_t entry) {
    if (is_hidden(entries, entry)) return;
    has_rows = true;
    const RowFacts facts = entries.facts(entry);
    for (const std::size_t cell : measured)
      cells[cell].width = std::max(cells[cell].width, cells_.width_of(cells[cell].column, facts));
  });
  for (const std::size_t cell : measured)
    if (!has_rows) cells[cell].width = cells[cell].header.size();
  fit(cells);
  return cells;
}

// On a terminal, without chosen widths.
void ReportText::fit(std::vector<Cell>& cells) const {
  constexpr std::size_t kBetween = 2;  // and before the first
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

bool ReportText::is_hidden(const Entries& entries, std::uint32_t entry) const {
  if (options_->symbol_filter.empty()) return false;
  return entries.facts(entry).function->name().find(options_->symbol_filter) == std::string_view::npos;
}

std::vector<std::uint32_t> ReportText::shown_rows(const Entries& entries, std::uint64_t total,
                                                  format::WorkerPool* pool,
                                                  std::function<void()> beside) const {
  const Kind kind = options_->has_children ? Kind::Children : Kind::Overhead;
  std::vector<std::uint32_t> rows = entries.sorted(columns_->sorted, pool, std::move(beside));
  if (!options_->symbol_filter.empty() || options_->percent_limit > 0) {
    std::erase_if(rows, [&](std::uint32_t entry) {
      return is_hidden(entries, entry) ||
             percent_of(entries.value(kind, entry, 0), total) < options_->percent_limit;
    });
  }
  if (options_->top != 0 && rows.size() > options_->top) rows.resize(options_->top);
  return rows;
}

std::vector<std::uint64_t> ReportText::totals_of(const Entries& entries) const {
  std::vector<std::uint64_t> totals;
  for (std::size_t member = 0; member < entries.members(); ++member)
    totals.push_back(entries.whole(member, options_->is_relative));
  return totals;
}

FullValues ReportText::full_values(const Entries& entries) const {
  FullValues values{.weights = totals_of(entries), .latencies = {}};
  if (entries.latency() != nullptr) values.latencies = totals_of(*entries.latency());
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

void ReportText::write_row(TextBuffer& out, const Block& block, std::uint32_t entry, Last& last) const {
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
      numbers.text = cells_.numbers(cells[i], last.values, block.totals->of(kind));
      numbers.values = last.values;
    }
    out.left(numbers.text, width);
  }
  out.cut(begin + std::min(out.size() - begin, cells_.line_room(cells)));
  out.character('\n');
}

}  // namespace tacho::report
