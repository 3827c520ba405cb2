#include "report/views/report/row_graphs.h"

#include <algorithm>
#include <new>

namespace tacho::report {
namespace {

constexpr std::size_t kMostStrands = std::size_t{1} << 21;  // that are computed at a time

}  // namespace

RowGraphs::RowGraphs(const TextOptions& options, const Entries& entries, CallTree& tree, GraphTotals totals,
                     std::span<const GraphRow> rows)
    : entries_(&entries),
      rows_(rows),
      text_(*options.graph, tree.functions(), options.names, options.has_colour, options.room),
      limit_(graph_limit(*options.graph, totals.shown)),
      tree_(&tree),
      graphed_{.event_total = totals.all,
               .limit_total = totals.shown,
               .leaves_out_first = options.leaves_out_first} {
  end_ = rows_.size();
  while (end_ > 0 && is_light(rows_[end_ - 1])) --end_;
  if (!options.separator.empty()) graphed_.separator = options.separator;
}

void RowGraphs::tell_more() {
  std::vector<std::uint32_t> asked;
  std::vector<std::size_t> rows_of_asked;
  lists_begin_ = told_;
  for (std::size_t strands = 0; told_ < rows_.size() && (asked.empty() || strands < kMostStrands); ++told_) {
    const GraphRow& row = rows_[told_];
    if (is_light(row)) continue;
    for (const std::uint32_t entry : row.entries) {
      asked.push_back(entry);
      rows_of_asked.push_back(told_ - lists_begin_);
      strands += entries_->strand_count(entry);
    }
  }
  lists_.clear();
  lists_.resize(told_ - lists_begin_);
  auto strands = entries_->strands(asked);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    auto& list = lists_[rows_of_asked[i]];
    if (list.empty()) {
      list = std::move(strands[i]);
    } else {
      list.insert(list.end(), strands[i].begin(), strands[i].end());
    }
  }
}

const CallTree* RowGraphs::next() {
  if (next_ == told_) tell_more();
  auto& list = lists_[next_ - lists_begin_];
  graphed_.row_total = rows_[next_++].weight;
  if (list.empty()) return nullptr;
  tree_->build(list, limit_);
  list = {};
  return tree_;
}

void RowGraphs::write_next(TextBuffer& out) {
  if (const CallTree* const tree = next()) text_.write(out, *tree, graphed_);
}

void GraphsAhead::draw() {
  try {
    has_drawn_ = draw_all();
  } catch (const std::bad_alloc&) {  // who draws row by row needs less
  }
  if (has_drawn_) return;
  drawn_ = {};
  begins_ = {};
  text_ = TextBuffer();
}

bool GraphsAhead::draw_all() {
  constexpr std::size_t kMostRows = 4096, kMostText = std::size_t{32} << 20;  // bytes
  const CallTreeLimit limit = graph_limit(*options_->graph, totals_.shown);
  if (limit.share != CallTreeLimit::Share::OfTotal) return false;
  is_heavy_.resize(entries_->size());
  std::size_t strands = 0;
  for (std::uint32_t entry = 0; entry < entries_->size(); ++entry) {
    const std::uint64_t weight = entries_->value(weight_, entry, 0);
    if (weight < limit.least(weight) || percent_of(weight, totals_.shown) < options_->percent_limit) continue;
    is_heavy_[entry] = true;
    drawn_.push_back(entry);
    strands += entries_->strand_count(entry);
    if (drawn_.size() > kMostRows || strands > kMostStrands) return false;
  }
  // Most would never be shown.
  if (options_->top != 0 && drawn_.size() > options_->top) return false;
  std::vector<GraphRow> rows;
  for (const std::uint32_t& entry : drawn_) rows.push_back({{&entry, 1}, entries_->value(weight_, entry, 0)});
  RowGraphs graphs(*options_, *entries_, *tree_, totals_, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    begins_.push_back(text_.size());
    graphs.write_next(text_);
    if (text_.size() > kMostText) return false;
  }
  begins_.push_back(text_.size());
  return true;
}

std::string_view GraphsAhead::graph(std::uint32_t entry) const {
  const auto at = std::ranges::lower_bound(drawn_, entry) - drawn_.begin();
  const auto begin = begins_[static_cast<std::size_t>(at)], end = begins_[static_cast<std::size_t>(at) + 1];
  return text_.view().substr(begin, end - begin);
}

}  // namespace tacho::report
