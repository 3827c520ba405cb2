// The rows of a report as perf's --stdio writes them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/output/text_output.h"
#include "report/profile/entries.h"
#include "report/views/report/graph_options.h"
#include "report/views/report/report_columns.h"

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
  std::size_t top = 0;            // rows; 0: all
  std::string symbol_filter;      // part of the names to show; empty: all
  bool leaves_out_first = false;  // of a graph, the row's own function
  std::optional<GraphOptions> graph;
};

class ReportText {
 public:
  // `hidden`: columns that are not shown although rows are told apart by them.
  ReportText(const TextOptions& options, const ReportColumns& columns, std::vector<Column> hidden,
             const SampleFacts& facts, const FunctionTable& functions)
      : options_(&options),
        columns_(&columns),
        hidden_(std::move(hidden)),
        facts_(&facts),
        functions_(&functions) {}

  // One block: head and rows. `leader`: its first event.
  void write(TextOutput& out, const Entries& entries, std::size_t leader) const;

 private:
  struct Cell {
    Column column;
    std::string header;
    std::size_t width = 0;
    std::size_t number_width = 0;  // of each member's number
    bool is_right = false;         // the header
  };
  std::vector<Cell> cells_of(const Entries& entries, std::size_t leader) const;
  std::size_t key_width(const Entries& entries, const KeyUse& use) const;
  std::vector<std::uint32_t> shown_rows(const Entries& entries) const;
  bool is_hidden(const Entries& entries, std::uint32_t entry) const;
  std::uint64_t total(const Entries& entries, std::size_t member) const;
  double percent(const Entries& entries, Column::Kind kind, std::uint32_t entry, std::size_t member) const;
  void write_head(TextOutput& out, const std::vector<Cell>& cells) const;
  void write_row(TextOutput& out, const Entries& entries, std::uint32_t entry,
                 const std::vector<Cell>& cells) const;
  std::string weight_cell(const Entries& entries, std::uint32_t entry, const Cell& cell) const;
  std::string key_cell(const Entries& entries, std::uint32_t entry, const Cell& cell) const;
  void write_plain(TextOutput& out, const Entries& entries, const std::vector<std::uint32_t>& rows,
                   const std::vector<Cell>& cells) const;
  void write_graphs(TextOutput& out, const Entries& entries, const std::vector<std::uint32_t>& rows,
                    const std::vector<Cell>& cells) const;

  const TextOptions* options_;
  const ReportColumns* columns_;
  std::vector<Column> hidden_;
  const SampleFacts* facts_;
  const FunctionTable* functions_;
};

}  // namespace tacho::report
