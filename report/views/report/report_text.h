// The rows of a report as perf's --stdio writes them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "format/base/worker_pool.h"
#include "report/output/text_output.h"
#include "report/profile/entries.h"
#include "report/views/report/report_cells.h"

namespace tacho::report {

class ReportText {
 public:
  // `hidden`: columns that are not shown although rows are told apart by them.
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
