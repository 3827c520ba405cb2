// The call graphs below the rows of a report, one row after another.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "report/output/text_output.h"
#include "report/profile/entries.h"
#include "report/views/report/call_graph_text.h"
#include "report/views/report/report_cells.h"

namespace tacho::report {

// What an event weighs: `all` of it is 100 % in a graph, and the least share that is drawn is one of `shown`,
// what filters leave where they decide that.
struct GraphTotals {
  std::uint64_t all = 0, shown = 0;
};

// A row that may have a graph: its entries, and what it weighs.
struct GraphRow {
  std::span<const std::uint32_t> entries;
  std::uint64_t weight = 0;
};

// The parts of call chains are computed for as many rows at a time as fit into some megabytes: a batch.
class RowGraphs {
 public:
  // `options` has a graph. What is passed must outlive this.
  RowGraphs(const TextOptions& options, const Entries& entries, const StableArray<Function>& functions,
            GraphTotals totals, std::span<const GraphRow> rows);

  // The rows from this one on have no graph.
  std::size_t end() const { return end_; }

  // Row after row.
  // Builds the tree of the next row. False: it is too light for one, or has no call chains.
  bool build_next(CallTree& tree);
  // Writes the graph of the next row, if one is heavy enough.
  void write_next(TextBuffer& out, CallTree& tree);

  // Many rows at a time: the batch that begins with row `begin`, and behind which row it ends.
  std::size_t begin_batch(std::size_t begin);
  // Of a row of the batch: about how long its graph takes, and the graph. Each row once, several at the same
  // time with trees of their own.
  std::size_t strand_count(std::size_t row) const { return lists_[row - lists_begin_].size(); }
  void write(TextBuffer& out, CallTree& tree, std::size_t row);

 private:
  bool is_light(const GraphRow& row) const {  // too light for a graph
    return limit_.share == CallTreeLimit::Share::OfTotal && row.weight < limit_.least(row.weight);
  }
  bool build(CallTree& tree, std::size_t row);

  const Entries* entries_;
  std::span<const GraphRow> rows_;
  CallGraphText text_;
  CallTreeLimit limit_;
  GraphedRow graphed_;  // but for what the row weighs
  std::size_t end_ = 0;
  std::size_t next_ = 0;
  std::size_t lists_begin_ = 0;             // the batch's first row
  std::vector<std::vector<Strand>> lists_;  // of the batch's rows
};

}  // namespace tacho::report
