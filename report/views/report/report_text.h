// The rows of a report as perf's --stdio writes them.
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

}  // namespace tacho::report
