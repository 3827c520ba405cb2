// The rows of a report in levels, as perf's --stdio writes them with --hierarchy: the numbers on the left,
// and on the right the keys of the row, both moved to the right by level.
#pragma once

#include <vector>

#include "report/output/text_output.h"
#include "report/profile/hierarchy.h"
#include "report/views/report/report_cells.h"

namespace tacho::report {

// What the keys of one event are in levels. In perf each word of --sort is a level of its own, except for
// those in braces; what is not a level's stands on the left.
struct HierarchyPlan {
  std::vector<Column> left;
  std::vector<HierarchyLevel> levels;
  bool is_first_both = false;  // `left` is the first level as well
};

class HierarchyText {
 public:
  // What is passed must outlive this.
  HierarchyText(const TextOptions& options, const ReportColumns& columns, const SampleFacts& facts,
                CallTree& tree)
      : options_(&options), columns_(&columns), cells_(options, columns, facts), tree_(&tree) {}

  HierarchyPlan plan(std::size_t leader, std::size_t members) const;
  // One block: head and rows.
  void write(TextOutput& out, const Entries& entries, const Hierarchy& hierarchy,
             const HierarchyPlan& plan) const;

 private:
  struct Cells {
    std::vector<Cell> left;
    std::vector<std::vector<Cell>> levels;
  };
  Cells cells_of(const Hierarchy& hierarchy, const HierarchyPlan& plan) const;
  void write_head(TextOutput& out, const Cells& cells, const HierarchyPlan& plan) const;
  std::string cell_text(const Cell& cell, const Hierarchy& hierarchy, std::uint32_t row,
                        const FullValues& totals) const;
  void write_row(TextOutput& out, const Hierarchy& hierarchy, std::uint32_t row, const Cells& cells,
                 std::size_t nodes, const FullValues& totals) const;
  void fit(std::vector<std::string>& texts, std::span<const Cell> cells, std::size_t used) const;
  bool is_shown(const Hierarchy& hierarchy, std::uint32_t row, std::uint64_t total) const;
  std::size_t numbers_width(std::size_t members) const;

  const TextOptions* options_;
  const ReportColumns* columns_;
  ReportCells cells_;
  CallTree* tree_;
};

}  // namespace tacho::report
