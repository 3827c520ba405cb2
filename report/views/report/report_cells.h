// The cells of a report's rows, in the columns of perf's --stdio.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/output/terminal.h"
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
  std::span<const std::uint64_t> values_of(Column::Kind kind) const {
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

}  // namespace tacho::report
