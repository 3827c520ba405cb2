#include "report/views/report/row_graphs.h"

#include <algorithm>

namespace tacho::report {
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

}  // namespace tacho::report
