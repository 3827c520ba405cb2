#include "report/views/report/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "report/output/terminal.h"
#include "report/profile/branches.h"

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
  constexpr std::size_t kColours = 8 * 28;  // bytes for colours of all eight coloured columns, shown or not
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

namespace {

constexpr std::size_t kMargin = 12;          // columns left of a graph
constexpr std::size_t kLevel = 10;           // columns of a level, without its bar
constexpr std::size_t kLongestFrame = 1023;  // bytes of a frame that perf shows
// The most bytes of branch counts that perf shows: at frames common to all chains, and at others.
constexpr std::size_t kLongestStemCounts = 255, kLongestCounts = 63;

// " (COND_FWD CALL predicted:93.8%)", " (cycles:17 iter:2 avg_cycles:30)".
std::string counts_text(const BranchCounts& counts) {
  if (counts.branches == 0) return " (calltrace)";
  std::string text;
  const auto add = [&text](std::string_view word) {
    text += text.empty() ? " (" : " ";
    text += word;
  };
  const auto share = [&counts](std::uint64_t part) {
    return static_cast<float>(static_cast<double>(part) * 100.0 / static_cast<double>(counts.branches));
  };
  if (counts.is_target) {
    for (const std::string_view name : trait_names(counts.traits)) add(name);
    if (counts.predicted < counts.branches) add(fmt::format("predicted:{:.1f}%", share(counts.predicted)));
    constexpr float kLeastAborted = 0.1F;
    if (counts.aborted > 0 && share(counts.aborted) >= kLeastAborted)
      add(fmt::format("abort:{:.1f}%", share(counts.aborted)));
  } else {
    if (const std::uint64_t cycles = counts.cycles / counts.branches; cycles > 0)
      add(fmt::format("cycles:{}", cycles));
    if (counts.rounds > 0 && counts.sources > 0 && counts.rounds / counts.sources > 0) {
      add(fmt::format("iter:{}", counts.rounds / counts.sources));
      add(fmt::format("avg_cycles:{}", counts.round_cycles / counts.rounds));
    }
  }
  return text.empty() ? text : text + ")";
}

// The counts of a frame in at most `most` bytes, as perf; empty: no branches were counted.
std::string counts_at(std::span<const BranchCounts> counts, std::size_t frame, std::size_t most) {
  return counts.empty() ? std::string() : counts_text(counts[frame]).substr(0, most);
}

}  // namespace

CallTreeLimit graph_limit(const GraphOptions& options, std::uint64_t event_total) {
  using Share = CallTreeLimit::Share;
  const Share share = options.form == GraphForm::Fractal ? Share::OfParent
                      : options.form == GraphForm::Graph ? Share::OfTotal
                                                         : Share::OfItself;
  return {share, options.min_percent, event_total};
}

void CallGraphText::write_value(TextBuffer& out, std::uint64_t period, std::uint64_t samples,
                                std::uint64_t total) const {
  switch (options_.value) {
    case GraphValue::Period:
      return out.decimal(period);
    case GraphValue::Count:
      return out.decimal(samples);
    case GraphValue::Percent:
      break;
  }
  const double share = percent_of(period, total);
  const std::string text = fmt::format("{:.2f}%", share);
  out.text(has_colour_ ? coloured_share(share, text) : text);
}

std::string CallGraphText::frame_text(FunctionId id) const {
  const Function& function = (*functions_)[id];
  if (function.name().empty())
    return function.start == 0 ? std::string("0") : fmt::format("{:#x}", function.start);  // as %#lx
  std::string text = printable(function.shown_name(), names_);
  if (options_.key == ChainKey::Address ? !function.line().empty()
                                        : options_.key == ChainKey::SourceLine && function.has_line) {
    text += ' ';
    text += printable(function.line(), names_);
  }
  if (function.is_inlined) text += " (inlined)";
  text.resize(std::min(text.size(), kLongestFrame));
  return text;
}

void CallGraphText::end_line(TextBuffer& out, FunctionId id, std::string_view suffix) const {
  std::string text = frame_text(id);
  if (room_ != 0) {
    const std::string_view line = out.view().substr(out.view().rfind('\n') + 1);
    const std::size_t used = shown_width(line) + suffix.size();
    text = cut_in_the_middle(text, std::max(room_ - std::min(room_, used), kLeastNameWidth));
  }
  out.text(text);
  out.text(suffix);
  out.character('\n');
}

// Draws one tree. Open levels are on an explicit stack: call chains can be long.
class CallGraphText::Drawing {
 public:
  Drawing(const CallGraphText& text, TextBuffer& out, const CallTree& tree)
      : text_(&text), out_(&out), tree_(&tree) {}

  void draw(const GraphedRow& row) {
    const CallNode* top = &tree_->nodes()[0];
    const auto roots = tree_->children(*top);
    if (roots.size() == 1 && roots[0].period == row.row_total) {
      draw_stem(roots[0], row);
      top = roots.data();
    }
    levels_.push_back({.node = top, .total = is_fractal() ? row.row_total : row.event_total, .bars = 1});
    levels_.back().left = levels_.back().total;
    while (!levels_.empty()) draw_next();
  }

 private:
  // The children of a node of which some are drawn.
  struct Level {
    const CallNode* node = nullptr;
    std::size_t drawn = 0;
    std::uint64_t total = 0;    // of which the shares are
    std::uint64_t left = 0;     // of the total, not yet drawn (period)
    std::uint64_t samples = 0;  // of the drawn children
    std::uint32_t bars = 0;     // perf's mask of 32 levels: bit n is set while level n continues below
  };
  static std::uint32_t bar(std::size_t depth) { return std::uint32_t{1} << depth % 32; }
  bool is_fractal() const { return text_->options_.form == GraphForm::Fractal; }
  bool is_full(std::size_t drawn) const {
    return text_->options_.print_limit != 0 && drawn == text_->options_.print_limit;
  }

  // Draws the frames that all chains share.
  void draw_stem(const CallNode& node, const GraphedRow& row) {
    std::size_t drawn = 0;
    const auto counts = tree_->counts(node);
    for (std::size_t i = row.leaves_out_first ? 1 : 0; i < node.frames.size(); ++i) {
      out_->blanks(margin_);
      if (drawn == 0) {
        out_->text("|\n");
        out_->blanks(margin_);
        out_->text("---");
        margin_ += 3;
      }
      text_->end_line(*out_, node.frames[i], counts_at(counts, i, kLongestStemCounts));
      if (is_full(++drawn)) break;
    }
  }

  void draw_next() {
    Level& level = levels_.back();
    const std::size_t depth = levels_.size();
    const auto children = tree_->children(*level.node);
    if (level.drawn == children.size() || (level.drawn > 0 && is_full(level.drawn))) {
      if (is_fractal()) draw_rest(level);
      levels_.pop_back();
      return;
    }
    const CallNode& child = children[level.drawn++];
    level.left -= child.period;
    level.samples += child.samples;
    draw_bars(level.bars, depth);
    out_->character('\n');
    const bool is_last = level.drawn == children.size() && !(is_fractal() && level.left != 0);
    if (is_last) level.bars &= ~bar(depth - 1);
    const auto counts = tree_->counts(child);
    for (std::size_t i = 0; i < child.frames.size(); ++i) {
      i == 0 ? draw_head(level.bars, child.period, child.samples, level.total) : draw_bars(level.bars, depth);
      text_->end_line(*out_, child.frames[i], counts_at(counts, i, kLongestCounts));
    }
    const std::uint64_t below = is_fractal() ? child.period - child.own_period : level.total;
    levels_.push_back({.node = &child, .total = below, .left = below, .bars = level.bars | bar(depth)});
  }

  // Draws one line for all children below the threshold.
  void draw_rest(const Level& level) {
    if (level.left == 0 || level.left == level.total) return;
    const std::uint64_t samples = level.node->samples - level.node->own_samples - level.samples;
    if (text_->options_.value == GraphValue::Count && samples == 0) return;
    draw_head(level.bars & ~bar(levels_.size() - 1), level.left, samples, level.total);
    out_->text(tree_->counts_steps() ? "[...] (calltrace)\n" : "[...]\n");
  }

  void draw_bars(std::uint32_t bars, std::size_t levels) {
    out_->blanks(margin_);
    for (std::size_t i = 0; i < levels; ++i) {
      out_->character((bars & bar(i)) != 0 ? '|' : ' ');
      out_->blanks(kLevel);
    }
  }

  // Draws the bars of the levels above, and the value at the end of the last one.
  void draw_head(std::uint32_t bars, std::uint64_t period, std::uint64_t samples, std::uint64_t total) {
    const std::size_t depth = levels_.size();
    draw_bars(bars, depth - 1);
    out_->character((bars & bar(depth - 1)) != 0 ? '|' : ' ');
    out_->text("--");
    text_->write_value(*out_, period, samples, total);
    out_->text("--");
  }

  const CallGraphText* text_;
  TextBuffer* out_;
  const CallTree* tree_;
  std::size_t margin_ = kMargin;
  std::vector<Level> levels_;
};

// The nodes in which chains end, heaviest first; of equal weight, children before their parents.
std::vector<const CallNode*> CallGraphText::ended_nodes(const CallTree& tree, std::uint64_t least) const {
  struct Step {
    const CallNode* node;
    std::uint32_t child;
  };
  std::vector<const CallNode*> ended;
  std::vector<Step> steps{{&tree.nodes()[0], 0}};
  while (!steps.empty()) {
    Step& step = steps.back();
    const CallNode& node = *step.node;
    if (step.child < node.children) {
      steps.push_back({&tree.children(node)[step.child++], 0});
      continue;
    }
    if (node.own_period != 0 && node.own_period >= least) ended.push_back(&node);
    steps.pop_back();
  }
  std::ranges::stable_sort(ended, std::greater(), &CallNode::own_period);
  return ended;
}

void CallGraphText::write_paths(TextBuffer& out, const CallTree& tree, const GraphedRow& row) const {
  const bool is_flat = options_.form == GraphForm::Flat;
  auto ended = ended_nodes(tree, graph_limit(options_, row.limit_total.value_or(row.event_total)).least(0));
  if (options_.print_limit != 0 && ended.size() > options_.print_limit) ended.resize(options_.print_limit);
  std::vector<const CallNode*> path;
  for (const CallNode* node : ended) {
    path.clear();
    for (const CallNode* at = node; at->parent != CallNode::kNone; at = &tree.nodes()[at->parent])
      path.push_back(at);
    if (is_flat) out.blanks(kMargin - 1);
    write_value(out, is_flat ? node->period : node->own_period, is_flat ? node->samples : node->own_samples,
                row.event_total);
    out.character(is_flat ? '\n' : ' ');
    bool is_first = true;
    for (auto part = path.rbegin(); part != path.rend(); ++part) {
      for (const FunctionId frame : (*part)->frames) {
        if (is_flat) {
          out.blanks(kMargin + 4);
          end_line(out, frame);
          continue;
        }
        if (!is_first) out.text(row.separator);
        out.text(frame_text(frame));
        is_first = false;
      }
    }
    out.character('\n');
  }
}

void CallGraphText::write(TextBuffer& out, const CallTree& tree, const GraphedRow& row) const {
  if (options_.form == GraphForm::None) return;
  if (options_.form == GraphForm::Flat || options_.form == GraphForm::Folded) {
    write_paths(out, tree, row);
    return;
  }
  const std::size_t before = out.size();
  Drawing(*this, out, tree).draw(row);
  if (out.size() != before) out.character('\n');
}

RowGraphs::RowGraphs(const TextOptions& options, const Entries& entries,
                     const StableArray<Function, FunctionId>& functions, GraphTotals totals,
                     std::span<const GraphRow> rows)
    : entries_(&entries),
      rows_(rows),
      text_(*options.graph, functions, options.names, options.has_colour, options.room),
      limit_(graph_limit(*options.graph, totals.shown)),
      graphed_{.event_total = totals.all,
               .limit_total = totals.shown,
               .leaves_out_first = options.leaves_out_first} {
  end_ = rows_.size();
  while (end_ > 0 && is_light(rows_[end_ - 1])) --end_;
  if (!options.separator.empty()) graphed_.separator = options.separator;
}

std::size_t RowGraphs::begin_batch(std::size_t begin) {
  constexpr std::size_t kMostStrands = std::size_t{1} << 21;
  std::vector<EntryId> asked;
  std::vector<std::size_t> rows_of_asked;
  lists_begin_ = begin;
  std::size_t end = begin;
  for (std::size_t strands = 0; end < end_ && (asked.empty() || strands < kMostStrands); ++end) {
    const GraphRow& row = rows_[end];
    if (is_light(row)) continue;
    for (const EntryId entry : row.entries) {
      asked.push_back(entry);
      rows_of_asked.push_back(end - begin);
      strands += entries_->strand_count(entry);
    }
  }
  lists_.clear();
  lists_.resize(end - begin);
  auto strands = entries_->strands(asked);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    auto& list = lists_[rows_of_asked[i]];
    if (list.empty()) {
      list = std::move(strands[i]);
    } else {
      list.insert(list.end(), strands[i].begin(), strands[i].end());
    }
  }
  return end;
}

bool RowGraphs::build(CallTree& tree, std::size_t row) {
  auto& list = lists_[row - lists_begin_];
  if (list.empty()) return false;
  tree.build(list, limit_);
  list = {};
  return true;
}

void RowGraphs::write(TextBuffer& out, CallTree& tree, std::size_t row) {
  if (!build(tree, row)) return;
  GraphedRow graphed = graphed_;
  graphed.row_total = rows_[row].weight;
  text_.write(out, tree, graphed);
}

bool RowGraphs::build_next(CallTree& tree) {
  const std::size_t row = next_++;
  if (row >= end_) return false;
  if (row == lists_begin_ + lists_.size()) begin_batch(row);
  return build(tree, row);
}

void RowGraphs::write_next(TextBuffer& out, CallTree& tree) {
  const std::size_t row = next_++;
  if (row >= end_) return;
  if (row == lists_begin_ + lists_.size()) begin_batch(row);
  write(out, tree, row);
}

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
      numbers.text = cells_.numbers(cells[i], last.values, block.totals->of(kind));
      numbers.values = last.values;
    }
    out.left(numbers.text, width);
  }
  out.cut(begin + std::min(out.size() - begin, cells_.line_room(cells)));
  out.character('\n');
}

namespace {

constexpr std::size_t kStep = 3;        // blanks for each level
constexpr std::size_t kMostDots = 207;  // perf's limit

// The indentation of `nodes` groups of columns: the first is on the left, and the last has none after it.
std::size_t steps(std::size_t nodes) { return nodes < 2 ? 0 : (nodes - 2) * kStep; }

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

std::string_view without_indent(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

FilterBits decided_by(const SortKey& key) {
  if (key.of == KeyOf::Comm || key.of == KeyOf::Thread) return kByThread;
  if (key.name == "dso") return kByModule;
  return key.name == "symbol" ? kBySymbol : FilterBits{0};
}

std::size_t node_count(const HierarchyPlan& plan) {
  return plan.levels.size() + (plan.is_first_both ? 0 : 1);
}

}  // namespace

HierarchyPlan HierarchyText::plan(std::size_t leader, std::size_t members) const {
  struct Node {
    std::size_t level = 0;
    std::vector<Column> columns;
  };
  std::vector<Node> nodes;
  for (std::size_t i = 0; i < columns_->sorted.size(); ++i) {
    const Column& column = columns_->sorted[i];
    if (!cells_.is_of(column, leader, members)) continue;
    auto node = std::ranges::find(nodes, columns_->levels[i], &Node::level);
    if (node == nodes.end()) node = nodes.insert(node, {columns_->levels[i], {}});
    node->columns.push_back(column);
  }
  HierarchyPlan plan;
  if (nodes.empty()) return plan;
  plan.left = nodes.front().columns;
  plan.is_first_both = nodes.front().level != 0;
  for (Node& node : nodes) {
    if (node.level == 0) continue;
    FilterBits decides = 0;
    for (const Column& column : node.columns) {
      if (column.kind == Kind::Key) decides |= decided_by(*columns_->keys[column.key].key);
    }
    plan.levels.push_back({std::move(node.columns), decides});
  }
  return plan;
}

HierarchyText::Cells HierarchyText::cells_of(const Hierarchy& hierarchy, const HierarchyPlan& plan) const {
  Cells cells;
  const auto measured = [&](const Column& column) {
    Cell cell = cells_.cell_of(column, hierarchy.members(), 0);
    if (column.kind != Kind::Key) return cell;
    // As in perf, rows of all levels count, each with the values of its first sample.
    for (const TreeRowId row : hierarchy.ids()) {
      if (hierarchy.row(row).filtered == 0)
        cell.width = std::max(cell.width, cells_.width_of(column, hierarchy.facts(row)));
    }
    return cell;
  };
  for (const Column& column : plan.left) cells.left.push_back(measured(column));
  for (const HierarchyLevel& level : plan.levels) {
    auto& of_level = cells.levels.emplace_back();
    for (const Column& column : level.columns) of_level.push_back(measured(column));
  }
  return cells;
}

void HierarchyText::write_head(TextOutput& out, const Cells& cells, const HierarchyPlan& plan) const {
  const bool is_aligned = options_->separator.empty();
  const std::string_view between = is_aligned ? std::string_view("  ") : options_->separator;
  const std::size_t indent = is_aligned ? steps(node_count(plan)) : 0;
  out.text("# ");
  out.blanks(indent);
  for (const Cell& cell : cells.left) {
    out.text(cells_.header(cell));
    out.text(between);
  }
  std::string names;
  std::size_t width = 0;
  for (std::size_t level = plan.is_first_both ? 1 : 0; level < cells.levels.size(); ++level) {
    if (!names.empty()) names += " / ";
    const std::size_t depth = level - (plan.is_first_both ? 1 : 0);
    std::size_t level_width = depth * kStep;
    for (std::size_t i = 0; i < cells.levels[level].size(); ++i) {
      const Cell& cell = cells.levels[level][i];
      if (i > 0) names += '+';
      names += trimmed(cell.header);
      level_width += cell.width + (i > 0 ? 1 : 0);
    }
    width = std::max(width, level_width);
  }
  out.text(names);
  out.text("\n# ");
  out.fill('.', std::min(indent, kMostDots));
  for (std::size_t i = 0; i < cells.left.size(); ++i) {
    if (i > 0) out.text(is_aligned ? std::string_view("..") : between);
    out.fill('.', std::min(cells.left[i].width, kMostDots));
  }
  out.text(between);
  std::size_t dots = std::min(std::max(width, names.size()), kMostDots);
  if (options_->room != 0 && is_aligned) {
    const std::size_t used = shown_width(out.view().substr(out.view().rfind('\n') + 1));
    dots = std::min(dots, options_->room - std::min(options_->room, used));
  }
  out.fill('.', dots);
  out.text("\n#\n");
}

std::string HierarchyText::cell_text(const Cell& cell, const Hierarchy& hierarchy, TreeRowId row,
                                     const FullValues& totals) const {
  if (cell.column.kind == Kind::Key) return cells_.key(cell, hierarchy.facts(row));
  std::vector<std::uint64_t> values;
  for (std::size_t member = 0; member < hierarchy.members(); ++member)
    values.push_back(hierarchy.value(cell.column.kind, row, member));
  return cells_.numbers(cell, values, totals.of(cell.column.kind));
}

void HierarchyText::write_row(TextOutput& out, const Hierarchy& hierarchy, TreeRowId row, const Cells& cells,
                              std::size_t nodes, const FullValues& totals) const {
  const bool is_aligned = options_->separator.empty();
  const std::string_view between = is_aligned ? std::string_view("  ") : options_->separator;
  const std::size_t begin = out.size();
  out.blanks(hierarchy.row(row).level * kStep);
  for (std::size_t i = 0; i < cells.left.size(); ++i) {
    if (is_aligned || i > 0) out.text(between);
    out.left(cell_text(cells.left[i], hierarchy, row, totals), cells.left[i].width);
  }
  if (is_aligned) out.blanks(steps(nodes));
  const auto& level = cells.levels[hierarchy.row(row).level];
  std::vector<std::string> texts;
  for (const Cell& cell : level) texts.emplace_back(without_indent(cell_text(cell, hierarchy, row, totals)));
  if (is_aligned) fit(texts, level, shown_width(out.view().substr(begin)) + between.size());
  for (const std::string& text : texts) {
    out.text(between);
    out.text(text);
  }
  out.character('\n');
}

// Cuts the names of a level, which begin at column `used`.
void HierarchyText::fit(std::vector<std::string>& texts, std::span<const Cell> cells,
                        std::size_t used) const {
  constexpr std::size_t kBetween = 2;
  std::size_t whole = used;
  for (const std::string& text : texts) whole += shown_width(text) + (&text == &texts.front() ? 0 : kBetween);
  if (options_->room == 0 || whole <= options_->room) return;
  std::vector<std::size_t> widths;
  std::vector<bool> are_names;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const bool is_key = cells[i].column.kind == Kind::Key;
    if (is_key) texts[i].resize(texts[i].find_last_not_of(' ') + 1);
    widths.push_back(shown_width(texts[i]));
    are_names.push_back(is_key);
  }
  fit_columns(widths, are_names, kBetween, std::max(options_->room, used + 1) - used);
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (are_names[i]) texts[i] = cut_in_the_middle(texts[i], widths[i]);
}

bool HierarchyText::is_shown(const Hierarchy& hierarchy, TreeRowId row, std::uint64_t total) const {
  return hierarchy.row(row).filtered == 0 &&
         percent_of(hierarchy.value(Kind::Overhead, row, 0), total) >= options_->percent_limit;
}

// The width of the columns before the first key.
std::size_t HierarchyText::numbers_width(std::size_t members) const {
  std::size_t width = 0;
  for (const Column& column : columns_->shown) {
    if (column.kind == Kind::Key) break;
    width += cells_.cell_of(column, members, 0).width + (width == 0 ? 0 : 2);
  }
  return width;
}

void HierarchyText::write(TextOutput& out, const Entries& entries, const Hierarchy& hierarchy,
                          const HierarchyPlan& plan) const {
  const Cells cells = cells_of(hierarchy, plan);
  if (!options_->is_quiet) write_head(out, cells, plan);
  FullValues totals;
  for (std::size_t member = 0; member < hierarchy.members(); ++member) {
    totals.weights.push_back(hierarchy.total(member, options_->is_relative));
    totals.latencies.push_back(hierarchy.total(member, options_->is_relative, Kind::Latency));
  }
  std::vector<GraphRow> graph_rows;
  std::optional<RowGraphs> graphs;
  for (const TreeRowId row : hierarchy.shown()) {
    if (hierarchy.row(row).is_leaf && is_shown(hierarchy, row, totals.weights[0]))
      graph_rows.push_back({hierarchy.entries_of(row), hierarchy.value(Kind::Overhead, row, 0)});
  }
  if (options_->graph)
    graphs.emplace(*options_, entries, tree_->functions(), GraphTotals{totals.weights[0], totals.weights[0]},
                   graph_rows);

  std::size_t lines = 0;
  for (const TreeRowId row : hierarchy.shown()) {
    if (options_->top != 0 && lines >= options_->top) break;
    if (!is_shown(hierarchy, row, totals.weights[0])) continue;
    write_row(out, hierarchy, row, cells, node_count(plan), totals);
    ++lines;
    if (hierarchy.row(row).is_leaf) {
      if (graphs) graphs->write_next(out, *tree_);
    } else if (std::ranges::none_of(hierarchy.below(row), [&](TreeRowId below) {
                 return is_shown(hierarchy, below, totals.weights[0]);
               })) {
      const std::size_t indent = steps(node_count(plan) + hierarchy.row(row).level + 1);
      out.blanks((options_->separator.empty() ? indent : 0) + numbers_width(hierarchy.members()) + 4);
      out.text(fmt::format("no entry >= {:.2f}%\n", options_->percent_limit));
      ++lines;
    }
    out.line_end();
  }
}

namespace {

struct BlockColumn {
  std::string_view header;
  std::size_t width;
};
constexpr BlockColumn kColumns[] = {{"Sampled Cycles%", 15},       {"Sampled Cycles", 14},
                                    {"Avg Cycles%", 11},           {"Avg Cycles", 10},
                                    {"[Program Block Range]", 70}, {"Shared Object", 20}};
constexpr std::size_t kLongestRange = 1023;  // bytes, as perf

struct BlockRow {
  const Function* function = nullptr;
  CycleBlock block;
};

// "873", "1.2K", "5.0M"
std::string rounded(std::uint64_t cycles) {
  constexpr double kThousand = 1000, kMillion = 1000000;
  const auto number = static_cast<double>(cycles);
  if (number >= kMillion) return fmt::format("{:.1f}M", number / kMillion);
  if (number >= kThousand) return fmt::format("{:.1f}K", number / kThousand);
  return std::to_string(cycles);
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// "file.c:12"; "FUNCTION+12" if the module has no lines; empty if it has lines, but none for this address.
std::string line_at(Resolver& resolver, const Location& location, Names names) {
  const symbolize::Frame& frame = resolver.frame(location);
  if (frame.line_state == symbolize::LineState::Known)
    return fmt::format("{}:{}", printable(frame.file.substr(frame.file.rfind('/') + 1), names), frame.line);
  if (frame.line_state == symbolize::LineState::Unknown) return {};
  return fmt::format("{}+{}", printable(frame.function, names), frame.shown_address - frame.function_start);
}

std::string range_of(Resolver& resolver, const CycleBlock& block, Names names) {
  Location first = block.last;
  first.ip.value -= block.end - block.start;
  const std::string from = line_at(resolver, first, names), to = line_at(resolver, block.last, names);
  return from.empty() || to.empty() ? fmt::format("[{:7x} -> {:7x}]", block.start, block.end)
                                    : fmt::format("[{} -> {}]", from, to).substr(0, kLongestRange);
}

// To perf, blocks of equal name and size are one, even in two modules: the first one counts. Blocks of equal
// share are sorted by name, descending.
std::vector<BlockRow> rows_of(const Entries& entries, std::span<const EntryId> rows, BlockCycles& cycles,
                              std::uint64_t& average_total) {
  using BlockKey = std::tuple<std::string_view, std::uint64_t, std::uint64_t>;
  std::map<BlockKey, BlockRow> blocks;
  std::unordered_map<SymbolId, std::vector<CycleBlock>> known;
  for (const EntryId row : rows) {
    const Function* const function = entries.facts(row).function;
    const auto [of_function, is_new] = known.try_emplace(function->symbol);
    if (is_new) of_function->second = cycles.blocks_of(*function);
    for (const CycleBlock& block : of_function->second) {
      average_total += block.cycles / block.branches;
      blocks.try_emplace({function->name(), block.start, block.end}, BlockRow{function, block});
    }
  }
  std::vector<BlockRow> all;
  for (auto& [key, row] : blocks) all.push_back(std::move(row));
  std::ranges::stable_sort(all, std::greater(), [](const BlockRow& row) { return row.function->name(); });
  std::ranges::stable_sort(all, std::greater(), [&cycles](const BlockRow& row) {
    constexpr double kSteps = 100000;  // resolution of shares in perf
    return static_cast<std::int64_t>(share(row.block.cycles, cycles.total()) * kSteps);
  });
  return all;
}

void write_head(TextBuffer& out) {
  for (const bool is_name : {true, false}) {
    out.text("#");
    for (const auto& [header, width] : kColumns) {
      out.text(std::begin(kColumns)->header == header ? " " : "  ");
      out.text(is_name ? fmt::format("{:>{}}", header, width) : std::string(width, '.'));
    }
    out.character('\n');
  }
  out.text("#\n");
}

}  // namespace

void write_blocks(TextOutput& out, const Entries& entries, std::span<const EntryId> rows, BlockCycles& cycles,
                  Resolver& resolver, const TextOptions& options) {
  std::uint64_t average_total = 0;
  const auto all = rows_of(entries, rows, cycles, average_total);
  TextBuffer text;
  if (options.separator.empty()) write_head(text);
  std::size_t shown = 0;
  for (const BlockRow& row : all) {
    const double percent = 100 * share(row.block.cycles, cycles.total());
    if (percent < options.percent_limit) continue;
    if (options.top != 0 && shown++ == options.top) break;
    const std::uint64_t average = row.block.cycles / row.block.branches;
    const auto percents = [&](double number, std::size_t width) {
      const std::string cell =
          fmt::format("{:>{}}", fmt::format("{:.2f}%", number), options.separator.empty() ? width : 0);
      return options.has_colour ? coloured_share(number, cell) : cell;
    };
    const std::array<std::string, std::size(kColumns)> cells = {
        percents(percent, kColumns[0].width),
        rounded(row.block.cycles),
        percents(100 * share(average, average_total), kColumns[2].width),
        rounded(average),
        range_of(resolver, row.block, options.names),
        printable(row.function->module->short_name, options.names)};
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (options.separator.empty()) {
        text.text("  ");
        text.text(fmt::format("{:>{}}", cells[i], i == 0 || i == 2 ? 0 : kColumns[i].width));
      } else {
        if (i > 0) text.text(options.separator);
        text.text(cells[i]);
      }
    }
    text.character('\n');
  }
  out.text(text.view());
}

void BranchStatistics::add_branch(std::uint64_t from, std::uint64_t to, BranchType type,
                                  std::uint64_t count) {
  constexpr unsigned kPage = 12, kLargePage = 21;  // bits of an address within
  if (type.type == BranchType::kUnknown || from == 0) return;
  (type.type == BranchType::kExtended ? extended_[type.extended] : types_[type.type]) += count;
  if (type.type == BranchType::kConditional) (to > from ? forward_ : backward_) += count;
  if (from >> kLargePage != to >> kLargePage) {
    cross_2m_ += count;
  } else if (from >> kPage != to >> kPage) {
    cross_4k_ += count;
  }
}

// As perf, whose last line has no line end, and which adds extended types to no total.
void BranchStatistics::write(TextOutput& out) const {
  const std::uint64_t total = std::accumulate(types_.begin(), types_.end(), std::uint64_t{0});
  if (total == 0) return;
  out.text("\n#\n# Branch Statistics:\n#");
  const auto line = [&](std::string_view name, std::uint64_t count) {
    if (count == 0) return;
    out.text(fmt::format("\n{:>8}: {:5.1f}%", name, percent_of(count, total)));
  };
  line("COND_FWD", forward_);
  line("COND_BWD", backward_);
  line("CROSS_4K", cross_4k_);
  line("CROSS_2M", cross_2m_);
  for (unsigned type = 0; type < BranchType::kCount; ++type) line(branch_type_name({type, 0}), types_[type]);
  for (unsigned type = 0; type < BranchType::kCount; ++type)
    line(branch_type_name({BranchType::kExtended, type}), extended_[type]);
}

}  // namespace tacho::report
