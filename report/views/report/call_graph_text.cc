#include "report/views/report/call_graph_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "report/output/terminal.h"
#include "report/profile/branches.h"

namespace tacho::report {

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

}  // namespace tacho::report
