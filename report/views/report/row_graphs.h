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

// The parts of call chains are computed for as many rows at a time as fit into some megabytes.
class RowGraphs {
 public:
  // `options` has a graph; `tree` is built anew for each. What is passed must outlive this.
  RowGraphs(const TextOptions& options, const Entries& entries, CallTree& tree, GraphTotals totals,
            std::span<const GraphRow> rows);

  // The rows from this one on have no graph.
  std::size_t end() const { return end_; }
  // The tree of the next row; null: it is too light for one, or has no call chains. Valid until the next
  // call.
  const CallTree* next();
  // Writes the graph of the next row, if one is heavy enough.
  void write_next(TextBuffer& out);

 private:
  bool is_light(const GraphRow& row) const {  // too light for a graph
    return limit_.share == CallTreeLimit::Share::OfTotal && row.weight < limit_.least(row.weight);
  }
  void tell_more();

  const Entries* entries_;
  std::span<const GraphRow> rows_;
  CallGraphText text_;
  CallTreeLimit limit_;
  CallTree* tree_;
  GraphedRow graphed_;
  std::size_t end_ = 0;
  std::size_t next_ = 0, told_ = 0;         // rows: the next one; those before were asked for
  std::vector<std::vector<Strand>> lists_;  // of the rows from tell_more() on, up to told_
  std::size_t lists_begin_ = 0;
};

// The graphs of all rows, drawn while their order is made: it changes nothing in a graph. That is where few
// rows are heavy enough to have one.
class GraphsAhead {
 public:
  // As RowGraphs; rows are of one entry each and weigh what `weight` says.
  GraphsAhead(const TextOptions& options, const Entries& entries, CallTree& tree, GraphTotals totals,
              Column::Kind weight)
      : options_(&options), entries_(&entries), tree_(&tree), totals_(totals), weight_(weight) {}

  // On whichever thread, once.
  void draw();
  // False: too many have a graph, or more than are shown, or their text is too long or memory too short to
  // keep it. None was drawn then.
  bool has_drawn() const { return has_drawn_; }
  // The entry's graph: nothing where it has none. After draw().
  bool has_graph(std::uint32_t entry) const { return is_heavy_[entry]; }
  std::string_view graph(std::uint32_t entry) const;

 private:
  bool draw_all();

  const TextOptions* options_;
  const Entries* entries_;
  CallTree* tree_;
  GraphTotals totals_;
  Column::Kind weight_;
  bool has_drawn_ = false;
  std::vector<bool> is_heavy_;        // by entry
  std::vector<std::uint32_t> drawn_;  // entries, ascending
  std::vector<std::size_t> begins_;   // of their graphs in text_, and the end of the last
  TextBuffer text_;
};

}  // namespace tacho::report
