// The rows of a report as perf's --stdio writes them: cells, call graphs below the rows, levels
// (--hierarchy), and branches.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/base/worker_pool.h"
#include "report/decode/coded_values.h"
#include "report/output/text_output.h"
#include "report/profile/block_cycles.h"
#include "report/profile/call_tree.h"
#include "report/profile/entries.h"
#include "report/profile/hierarchy.h"
#include "report/views/report/graph_options.h"
#include "report/views/report/report_columns.h"

namespace tacho::report {

// Options about the form and choice of rows.
struct RowLook {
  std::string separator;            // -t; empty: columns are aligned
  std::vector<std::size_t> widths;  // -w, by column; 0: as wide as needed
  double percent_limit = 0;         // rows below it are left out
  bool is_relative = false;         // --percentage relative: shares of the samples that passed the filter
  bool is_quiet = false;            // -q: rows only
  std::size_t top = 0;              // rows; 0: all
};

struct TextOptions : RowLook {
  Names names = Names::Safe;
  bool has_colour = false;
  bool has_children = false;
  bool has_groups = false;        // events of a group are printed side by side
  std::size_t room = 0;           // columns that rows fit into; 0: no limit
  std::string symbol_filter;      // part of the names to show; empty: all
  bool leaves_out_first = false;  // of a graph, the row's own function
  std::optional<GraphOptions> graph;
};

// A column as it is printed.
struct Cell {
  Column column;
  std::string header;
  std::size_t width = 0;
  std::size_t number_width = 0;  // of each member's number
  bool is_right = false;         // of the header: right-aligned
  bool is_cut = false;           // names that are wider are cut in the middle
};

// The totals that are 100 %, one for each member of a group.
struct FullValues {
  std::vector<std::uint64_t> weights, latencies;
  std::span<const std::uint64_t> of(Column::Kind kind) const {
    return is_latency(kind) ? latencies : weights;
  }
};

double percent_of(std::uint64_t part, std::uint64_t total);

class ReportCells {
 public:
  // The arguments must outlive this.
  ReportCells(const TextOptions& options, const ReportColumns& columns, const SampleFacts& facts)
      : options_(&options), columns_(&columns), facts_(&facts) {}

  // Whether the events of the group that begins with `leader` have this column.
  bool is_of(const Column& column, std::size_t leader, std::size_t members) const;
  // `given_width`: by -w; 0: none. A key's column begins with the width of its header.
  Cell cell_of(const Column& column, std::size_t members, std::size_t given_width) const;
  // The width that a key needs in this row.
  std::size_t width_of(const Column& column, const RowFacts& row) const;

  // The name of a column, aligned.
  std::string header(const Cell& cell) const;
  // The numbers of a row: one for each member, with their totals.
  std::string numbers(const Cell& cell, std::span<const std::uint64_t> values,
                      std::span<const std::uint64_t> totals) const;
  std::string key(const Cell& cell, const RowFacts& row) const;
  // perf's maximum number of bytes in a row: room for the aligned columns and, without a separator, for
  // colours. Longer cells (variables, names with -w) cut off the end of the row.
  std::size_t line_room(std::span<const Cell> cells) const;

 private:
  const TextOptions* options_;
  const ReportColumns* columns_;
  const SampleFacts* facts_;
};

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
  std::size_t end() const { return end_; }

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

// The rows of a report without levels.
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

  // Writes one block: headings and rows. `leader`: its first event.
  void write(TextOutput& out, const Entries& entries, std::size_t leader) const;
  // The rows that are shown, in order. `total` is 100 %.
  std::vector<EntryId> shown_rows(const Entries& entries, std::uint64_t total) const {
    return shown_rows(entries, total, nullptr, {});
  }
  // The totals that are 100 %.
  FullValues full_values(const Entries& entries) const;

 private:
  std::vector<Cell> cells_of(const Entries& entries, std::size_t leader) const;
  void fit(std::vector<Cell>& cells) const;
  bool is_hidden(const Entries& entries, EntryId entry) const;
  void write_head(TextOutput& out, const std::vector<Cell>& cells) const;
  std::vector<EntryId> shown_rows(const Entries& entries, std::uint64_t total, format::WorkerPool* pool,
                                  std::function<void()> beside) const;
  // The numbers of the row before, with their text: adjacent rows often have equal numbers.
  struct Last {
    struct Numbers {
      std::vector<std::uint64_t> values;
      std::string text;
    };
    std::vector<Numbers> cells;         // by column of numbers
    std::vector<std::uint64_t> values;  // scratch
  };
  // The state of a block while it is written.
  struct Block {
    const Entries* entries;
    std::span<const EntryId> rows;
    std::span<const Cell> cells;
    const FullValues* totals;
    format::WorkerPool* pool;
  };
  std::size_t write_graphed(TextOutput& out, const Block& block) const;
  void write_plain(TextOutput& out, const Block& block) const;
  void write_row(TextBuffer& out, const Block& block, EntryId entry, Last& last) const;

  const TextOptions* options_;
  const ReportColumns* columns_;
  std::vector<Column> hidden_;
  const SampleFacts* facts_;
  ReportCells cells_;
  const CallTree* tree_;  // copied for each thread
  format::WorkerPool* pool_;
};

// The columns of one event with --hierarchy. As in perf, each word of --sort is a level, and words in braces
// share one; all other columns are on the left.
struct HierarchyPlan {
  std::vector<Column> left;
  std::vector<HierarchyLevel> levels;
  bool is_first_both = false;  // `left` is also the first level
};

// The rows of a report in levels, as perf's --stdio writes them with --hierarchy: numbers left, keys of the
// row right, indented by level.
class HierarchyText {
 public:
  // The arguments must outlive this.
  HierarchyText(const TextOptions& options, const ReportColumns& columns, const SampleFacts& facts,
                CallTree& tree)
      : options_(&options), columns_(&columns), cells_(options, columns, facts), tree_(&tree) {}

  HierarchyPlan plan(std::size_t leader, std::size_t members) const;
  // Writes one block: headings and rows.
  void write(TextOutput& out, const Entries& entries, const Hierarchy& hierarchy,
             const HierarchyPlan& plan) const;

 private:
  struct Cells {
    std::vector<Cell> left;
    std::vector<std::vector<Cell>> levels;
  };
  Cells cells_of(const Hierarchy& hierarchy, const HierarchyPlan& plan) const;
  void write_head(TextOutput& out, const Cells& cells, const HierarchyPlan& plan) const;
  std::string cell_text(const Cell& cell, const Hierarchy& hierarchy, TreeRowId row,
                        const FullValues& totals) const;
  void write_row(TextOutput& out, const Hierarchy& hierarchy, TreeRowId row, const Cells& cells,
                 std::size_t nodes, const FullValues& totals) const;
  void fit(std::vector<std::string>& texts, std::span<const Cell> cells, std::size_t used) const;
  bool is_shown(const Hierarchy& hierarchy, TreeRowId row, std::uint64_t total) const;
  std::size_t numbers_width(std::size_t members) const;

  const TextOptions* options_;
  const ReportColumns* columns_;
  ReportCells cells_;
  CallTree* tree_;
};

// --total-cycles: writes the blocks of the functions in which the rows' branches ended. `cycles` is complete;
// `rows` are all rows of `entries`, in the report's order.
void write_blocks(TextOutput& out, const Entries& entries, std::span<const EntryId> rows, BlockCycles& cycles,
                  Resolver& resolver, const TextOptions& options);

// Branches by type and distance, which perf prints below the rows of branches.
class BranchStatistics {
 public:
  void add_branch(std::uint64_t from, std::uint64_t to, BranchType type, std::uint64_t count);
  // Writes nothing if no branch has a type.
  void write(TextOutput& out) const;

 private:
  std::array<std::uint64_t, BranchType::kCount> types_{}, extended_{};
  std::uint64_t forward_ = 0, backward_ = 0;  // conditional branches
  std::uint64_t cross_4k_ = 0, cross_2m_ = 0;
};

}  // namespace tacho::report
