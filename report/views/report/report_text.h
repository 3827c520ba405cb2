// The rows of a report as perf's --stdio writes them.
#pragma once

#include <string>
#include <vector>

#include "report/output/text_output.h"
#include "report/profile/entries.h"
#include "report/views/report/report_cells.h"

namespace tacho::report {

class ReportText {
 public:
  // `hidden`: columns that are not shown although rows are told apart by them.
  ReportText(const TextOptions& options, const ReportColumns& columns, std::vector<Column> hidden,
             const SampleFacts& facts, CallTree& tree)
      : options_(&options),
        columns_(&columns),
        hidden_(std::move(hidden)),
        facts_(&facts),
        cells_(options, columns, facts),
        tree_(&tree) {}

  // One block: head and rows. `leader`: its first event.
  void write(TextOutput& out, const Entries& entries, std::size_t leader) const;
  // The rows that are shown, in their order; `total`: what 100 % are.
  std::vector<std::uint32_t> shown_rows(const Entries& entries, std::uint64_t total) const;
  // Of each member of the block: what 100 % are.
  // What 100 % are.
  FullValues full_values(const Entries& entries) const;

 private:
  std::vector<std::uint64_t> totals_of(const Entries& entries) const;
  std::vector<Cell> cells_of(const Entries& entries, std::size_t leader) const;
  void fit(std::vector<Cell>& cells) const;
  bool is_hidden(const Entries& entries, std::uint32_t entry) const;
  void write_head(TextOutput& out, const std::vector<Cell>& cells) const;
  // The text of rows without graphs, in pieces of half a megabyte and of one row at least. What is passed
  // must outlive it.
  TextPieces pieces_of(const Entries& entries, std::span<const std::uint32_t> rows,
                       const std::vector<Cell>& cells, const FullValues& totals) const;
  // What rows were written with: rows of equal weight, as neighbours are, have the same numbers.
  struct Last {
    struct Numbers {
      std::vector<std::uint64_t> values;
      std::string text;
    };
    std::vector<Numbers> cells;         // of each column of numbers
    std::vector<std::uint64_t> values;  // scratch
  };
  void write_row(TextBuffer& out, const Entries& entries, std::uint32_t entry, const std::vector<Cell>& cells,
                 const FullValues& totals, Last& last) const;

  const TextOptions* options_;
  const ReportColumns* columns_;
  std::vector<Column> hidden_;
  const SampleFacts* facts_;
  ReportCells cells_;
  CallTree* tree_;
};

}  // namespace tacho::report
