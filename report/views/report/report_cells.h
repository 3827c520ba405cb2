// The cells of a report's rows as perf's --stdio writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "report/profile/entries.h"
#include "report/views/report/report_options.h"

namespace tacho::report {

struct TextOptions {
  Names names = Names::Safe;
  std::string separator;            // -t; empty: columns are aligned
  std::vector<std::size_t> widths;  // -w, by column; 0: as wide as needed
  double percent_limit = 0;         // rows below it are left out
  bool is_relative = false;         // --percentage relative: shares of what was not filtered
  bool is_quiet = false;            // -q: rows only
  bool has_colour = false;
  bool has_children = false;
  bool has_groups = false;        // events stand side by side where they are a group's
  std::size_t top = 0;            // rows; 0: all
  std::size_t room = 0;           // columns that rows fit into; 0: no limit
  std::string symbol_filter;      // part of the names to show; empty: all
  bool leaves_out_first = false;  // of a graph, the row's own function
  std::optional<GraphOptions> graph;
};

// A column as it is shown.
struct Cell {
  Column column;
  std::string header;
  std::size_t width = 0;
  std::size_t number_width = 0;  // of each member's number
  bool is_right = false;         // the header
  bool is_cut = false;           // names that are wider are cut in the middle
};

// What 100 % are, one number for each member of a group.
struct FullValues {
  std::vector<std::uint64_t> weights, latencies;
  std::span<const std::uint64_t> of(Column::Kind kind) const {
    return is_latency(kind) ? latencies : weights;
  }
};

double percent_of(std::uint64_t part, std::uint64_t total);

class ReportCells {
 public:
  // What is passed must outlive this.
  ReportCells(const TextOptions& options, const ReportColumns& columns, const SampleFacts& facts)
      : options_(&options), columns_(&columns), facts_(&facts) {}

  // Whether events from number `leader` on have this column.
  bool is_of(const Column& column, std::size_t leader, std::size_t members) const;
  // `asked`: the width that -w gives it; 0: none. A key's column is at first as wide as its header.
  Cell cell_of(const Column& column, std::size_t members, std::size_t asked) const;
  // How wide a key's column must be for this row.
  std::size_t width_of(const Column& column, const RowFacts& row) const;

  // The name of a column, aligned.
  std::string header(const Cell& cell) const;
  // What members' numbers are, and what 100 % are for each.
  std::string numbers(const Cell& cell, std::span<const std::uint64_t> values,
                      std::span<const std::uint64_t> totals) const;
  std::string key(const Cell& cell, const RowFacts& row) const;
  // The most bytes of a row. perf has room for the aligned columns and some more, without a separator also
  // for colours: cells that are longer than their columns (places in variables, names with -w) cost the row
  // its end.
  std::size_t line_room(std::span<const Cell> cells) const;

 private:
  const TextOptions* options_;
  const ReportColumns* columns_;
  const SampleFacts* facts_;
};

}  // namespace tacho::report
