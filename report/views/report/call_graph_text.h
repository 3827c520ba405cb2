// Call graphs below the rows of a report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/output/text_output.h"
#include "report/profile/call_tree.h"
#include "report/profile/entries.h"
#include "report/views/report/graph_options.h"
#include "report/views/report/report_cells.h"

namespace tacho::report {

// A row with a call graph.
struct GraphedRow {
  std::uint64_t event_total = 0;  // period of the event: 100 %, but for Fractal
  // The total of which the threshold is a share; nullopt: event_total.
  std::optional<std::uint64_t> limit_total{};
  std::uint64_t row_total = 0;       // period of the row, or what its column Children shows
  bool leaves_out_first = false;     // the row is sorted by symbol: the first frame would be shown twice
  std::string_view separator = ";";  // of frames, with Folded
};

// The limits for the tree of a graph form.
CallTreeLimit graph_limit(const GraphOptions& options, std::uint64_t event_total);

// Call graphs below rows, byte for byte as perf report --stdio draws them.
class CallGraphText {
 public:
  // `has_colour`: shares are coloured. `room`: the width of lines, to which names are cut; 0: no limit.
  CallGraphText(const GraphOptions& options, const StableArray<Function, FunctionId>& functions, Names names,
                bool has_colour = false, std::size_t room = 0)
      : options_(options), functions_(&functions), names_(names), has_colour_(has_colour), room_(room) {}

  // Writes the graph of a row with a blank line after it; nothing if no node reaches the threshold.
  void write(TextBuffer& out, const CallTree& tree, const GraphedRow& row) const;

 private:
  class Drawing;
  std::vector<const CallNode*> ended_nodes(const CallTree& tree, std::uint64_t least) const;
  void write_paths(TextBuffer& out, const CallTree& tree, const GraphedRow& row) const;
  void write_value(TextBuffer& out, std::uint64_t period, std::uint64_t samples, std::uint64_t total) const;
  std::string frame_text(FunctionId function) const;
  // Writes the frame, then `suffix`: how branches went there.
  void end_line(TextBuffer& out, FunctionId function, std::string_view suffix = {}) const;

  GraphOptions options_;
  const StableArray<Function, FunctionId>* functions_;
  Names names_;
  bool has_colour_;
  std::size_t room_;
};

// The totals of an event: `all` is 100 % in a graph; the threshold is a share of `shown`, which filters may
// reduce.
struct GraphTotals {
  std::uint64_t all = 0, shown = 0;
};

// A row that may have a graph: its entries and its weight.
struct GraphRow {
  std::span<const EntryId> entries;
  std::uint64_t weight = 0;
};

// Draws the graphs below the rows of a report, in their order, in batches: call chains are computed for as
// many rows as fit into some megabytes.
class RowGraphs {
 public:
  // `options` has a graph. The arguments must outlive this.
  RowGraphs(const TextOptions& options, const Entries& entries,
            const StableArray<Function, FunctionId>& functions, GraphTotals totals,
            std::span<const GraphRow> rows);

  // The first row without a graph; all later ones have none either.
  std::size_t end_of_graphs() const { return end_; }

  // One row after another:
  // Builds the tree of the next row. False: its weight is below the threshold, or it has no call chains.
  bool build_next(CallTree& tree);
  // Writes the graph of the next row; nothing if its weight is below the threshold.
  void write_next(TextBuffer& out, CallTree& tree);

  // Many rows at a time: prepares the batch that begins with row `begin`, and returns the row after it.
  std::size_t begin_batch(std::size_t begin);
  // Of a row in the batch: the approximate size of its graph, and the graph. Each row is drawn once; several
  // threads may draw rows at the same time, each with its own tree.
  std::size_t strand_count(std::size_t row) const { return lists_[row - lists_begin_].size(); }
  void write(TextBuffer& out, CallTree& tree, std::size_t row);

 private:
  bool is_light(const GraphRow& row) const {  // below the threshold
    return limit_.share == CallTreeLimit::Share::OfTotal && row.weight < limit_.least(row.weight);
  }
  bool build(CallTree& tree, std::size_t row);

  const Entries* entries_;
  std::span<const GraphRow> rows_;
  CallGraphText text_;
  CallTreeLimit limit_;
  GraphedRow graphed_;  // without the row's weight
  std::size_t end_ = 0;
  std::size_t next_ = 0;
  std::size_t lists_begin_ = 0;             // the batch's first row
  std::vector<std::vector<Strand>> lists_;  // of the batch's rows
};

}  // namespace tacho::report
