#include "report/views/report/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <ranges>
#include <utility>

#include "report/output/terminal.h"

namespace tacho::report {
namespace {

constexpr std::size_t kMargin = 12;          // columns left of a graph
constexpr std::size_t kLevel = 10;           // columns of a level, its bar aside
constexpr std::size_t kLongestFrame = 1023;  // bytes of a frame that perf shows
// Bytes of what perf shows of the branches there: in the frames that all chains share, and in others.
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

// What perf shows of it in `most` bytes; empty: branches are not counted.
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
  const double share = total == 0 ? 0.0 : static_cast<double>(period) * 100.0 / static_cast<double>(total);
  const std::string text = fmt::format("{:.2f}%", share);
  out.text(has_colour_ ? coloured_share(share, text) : text);
}

std::string CallGraphText::frame_text(std::uint32_t id) const {
  const Function& function = (*functions_)[id];
  if (function.name().empty())
    return function.start == 0 ? std::string("0") : fmt::format("{:#x}", function.start);  // as %#lx
  std::string text = printable(function.name(), names_);
  if (options_.key == ChainKey::Address ? !function.line().empty()
                                        : options_.key == ChainKey::SourceLine && function.has_line) {
    text += ' ';
    text += printable(function.line(), names_);
  }
  if (function.is_inlined) text += " (inlined)";
  text.resize(std::min(text.size(), kLongestFrame));
  return text;
}

void CallGraphText::end_line(TextBuffer& out, std::uint32_t id, std::string_view behind) const {
  std::string text = frame_text(id);
  if (room_ != 0) {
    const std::string_view line = out.view().substr(out.view().rfind('\n') + 1);
    const std::size_t used = shown_width(line) + behind.size();
    text = cut_in_the_middle(text, std::max(room_ - std::min(room_, used), kLeastNameWidth));
  }
  out.text(text);
  out.text(behind);
  out.character('\n');
}

// One tree on its way to the paper. Open levels are on an explicit stack: chains can be long.
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
  // Children of a node, some of which are drawn.
  struct Level {
    const CallNode* node = nullptr;
    std::size_t drawn = 0;
    std::uint64_t total = 0;    // what their shares are of
    std::uint64_t left = 0;     // of the total, period
    std::uint64_t samples = 0;  // of the drawn ones
    std::uint32_t bars = 0;     // perf's mask: bit n: level n goes on below; it has 32 bits for all levels
  };
  static std::uint32_t bar(std::size_t depth) { return std::uint32_t{1} << depth % 32; }
  bool is_fractal() const { return text_->options_.form == GraphForm::Fractal; }
  bool is_full(std::size_t drawn) const {
    return text_->options_.print_limit != 0 && drawn == text_->options_.print_limit;
  }

  // The frames that all chains share.
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

  // What was too light, together.
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

  // The bars of the levels above, and the value at the end of the last one.
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

// Nodes in which chains end, the heaviest first; below a node before it where they weigh the same.
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
      for (const std::uint32_t frame : (*part)->frames) {
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

namespace {

constexpr std::size_t kMostStrands = std::size_t{1} << 21;  // that are computed at a time

}  // namespace

RowGraphs::RowGraphs(const TextOptions& options, const Entries& entries,
                     const StableArray<Function>& functions, GraphTotals totals,
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
  std::vector<std::uint32_t> asked;
  std::vector<std::size_t> rows_of_asked;
  lists_begin_ = begin;
  std::size_t end = begin;
  for (std::size_t strands = 0; end < end_ && (asked.empty() || strands < kMostStrands); ++end) {
    const GraphRow& row = rows_[end];
    if (is_light(row)) continue;
    for (const std::uint32_t entry : row.entries) {
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
