// The rows of a report as perf's --stdio writes them, with the call graph below each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/worker_pool.h"
#include "report/output/text_output.h"
#include "report/profile/call_tree.h"
#include "report/profile/entries.h"
#include "report/views/report/report_cells.h"
#include "report/views/report/report_options.h"

namespace tacho::report {

// The call graph below a row, byte for byte as perf report --stdio draws it.

struct GraphedRow {
  std::uint64_t event_total = 0;               // period of the event: what 100 % are, but for Fractal
  std::optional<std::uint64_t> limit_total{};  // what the least share is one of; not given: event_total
  std::uint64_t row_total = 0;                 // period of the row; with children added up, if it shows those
  bool leaves_out_first = false;     // the row is sorted by symbol: the first frame would be shown twice
  std::string_view separator = ";";  // of frames, with Folded
};

// Which nodes are made for a form.
CallTreeLimit graph_limit(const GraphOptions& options, std::uint64_t event_total);

class CallGraphText {
 public:
  // `has_colour`: shares are coloured. `room`: columns that lines fit into, as far as names can be cut; 0: no
  // limit.
  CallGraphText(const GraphOptions& options, const StableArray<Function>& functions, Names names,
                bool has_colour = false, std::size_t room = 0)
      : options_(options), functions_(&functions), names_(names), has_colour_(has_colour), room_(room) {}

  // The lines of a row's graph, a blank line behind it included; nothing when nothing is heavy enough.
  void write(TextBuffer& out, const CallTree& tree, const GraphedRow& row) const;

 private:
  class Drawing;
  std::vector<const CallNode*> ended_nodes(const CallTree& tree, std::uint64_t least) const;
  void write_paths(TextBuffer& out, const CallTree& tree, const GraphedRow& row) const;
  void write_value(TextBuffer& out, std::uint64_t period, std::uint64_t samples, std::uint64_t total) const;
  std::string frame_text(std::uint32_t function) const;
  // The end of a line: the frame, and `behind` it how branches went there.
  void end_line(TextBuffer& out, std::uint32_t function, std::string_view behind = {}) const;

  GraphOptions options_;
  const StableArray<Function>* functions_;
  Names names_;
  bool has_colour_;
  std::size_t room_;
};

// The call graphs below the rows of a report, one row after another.

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

class ReportText {
 public:
  // `hidden`: keys that are not shown as columns.
  ReportText(const TextOptions& options, const ReportColumns& columns, std::vector<Column> hidden,
             const SampleFacts& facts, const CallTree& tree, format::WorkerPool& pool)
      : options_(&options),
        columns_(&columns),
        hidden_(std::move(hidden)),
        facts_(&facts),
        cells_(options, columns, facts),
        tree_(&tree),
        pool_(&pool) {}

  // One block: head and rows. `leader`: its first event.
  void write(TextOutput& out, const Entries& entries, std::size_t leader) const;
  // The rows that are shown, in their order; `total`: what 100 % are.
  std::vector<std::uint32_t> shown_rows(const Entries& entries, std::uint64_t total) const {
    return shown_rows(entries, total, nullptr, {});
  }
  // What 100 % are.
  FullValues full_values(const Entries& entries) const;

 private:
  std::vector<std::uint64_t> totals_of(const Entries& entries) const;
  std::vector<Cell> cells_of(const Entries& entries, std::size_t leader) const;
  void fit(std::vector<Cell>& cells) const;
  bool is_hidden(const Entries& entries, std::uint32_t entry) const;
  void write_head(TextOutput& out, const std::vector<Cell>& cells) const;
  std::vector<std::uint32_t> shown_rows(const Entries& entries, std::uint64_t total, format::WorkerPool* pool,
                                        std::function<void()> beside) const;
  // What rows were written with: rows of equal weight, as neighbours are, have the same numbers.
  struct Last {
    struct Numbers {
      std::vector<std::uint64_t> values;
      std::string text;
    };
    std::vector<Numbers> cells;         // of each column of numbers
    std::vector<std::uint64_t> values;  // scratch
  };
  // A block as it is written.
  struct Block {
    const Entries* entries;
    std::span<const std::uint32_t> rows;
    std::span<const Cell> cells;
    const FullValues* totals;
    format::WorkerPool* pool;
  };
  std::size_t write_graphed(TextOutput& out, const Block& block) const;
  void write_plain(TextOutput& out, const Block& block) const;
  void write_row(TextBuffer& out, const Block& block, std::uint32_t entry, Last& last) const;

  const TextOptions* options_;
  const ReportColumns* columns_;
  std::vector<Column> hidden_;
  const SampleFacts* facts_;
  ReportCells cells_;
  const CallTree* tree_;  // what those of rows begin as
  format::WorkerPool* pool_;
};

}  // namespace tacho::report
