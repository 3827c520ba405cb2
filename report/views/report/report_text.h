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
#include "report/views/report/report_cells.h"

namespace tacho::report {

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
