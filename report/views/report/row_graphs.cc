#include "report/views/report/row_graphs.h"

namespace tacho::report {

RowGraphs::RowGraphs(const TextOptions& options, const Entries& entries, CallTree& tree, GraphTotals totals,
                     std::span<const GraphRow> rows)
    : entries_(&entries),
      rows_(rows),
      text_(*options.graph, tree.functions(), options.names, options.has_colour),
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
  constexpr std::size_t kMostStrands = std::size_t{1} << 21;
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

void RowGraphs::write_next(TextOutput& out) {
  if (const CallTree* const tree = next()) text_.write(out, *tree, graphed_);
}

}  // namespace tacho::report
