// The rows of a report in levels (--hierarchy).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "report/output/text_output.h"
#include "report/profile/call_tree.h"
#include "report/profile/hierarchy.h"
#include "report/views/report/report_cells.h"
#include "report/views/report/report_columns.h"

namespace tacho::report {

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

}  // namespace tacho::report
