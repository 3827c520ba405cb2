// The rows of a report for a view that zooms, filters and sorts them again and again, without reading the
// capture again: all comes from the profile.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "report/views/report/report_sink.h"
#include "report/views/report/report_text.h"
#include "report/views/tui/browser.h"

namespace tacho::report {

// What of the profile is shown, and how.
struct RowChoice {
  std::uint32_t block = 0;  // an event, or a group of them
  // Zooms; empty: all.
  const Thread* thread = nullptr;
  std::optional<const symbolize::Module*> module;
  bool has_kernel_only = false;
  std::optional<std::uint32_t> socket;
  std::string symbol;  // part of the functions' names
  bool counts_samples = false;
  bool is_relative = false;  // shares of what zooms leave
  double percent_limit = 0;
  bool names_modules = false;  // in call graphs
  std::size_t order = 0;       // number of the column that rows are sorted by first
  std::size_t member = 0;      // of a group, whose numbers decide the order
};

class WalkedRows : public BrowsedRows {
 public:
  // After ReportSink::settle(). Both must outlive it.
  WalkedRows(const ReportSink& sink, const ReportOptions& options);

  // Events with samples, as numbers of blocks.
  const std::vector<std::uint32_t>& blocks() const { return blocks_; }
  std::string name_of(std::uint32_t block) const;  // of its event or events
  std::uint64_t samples_of(std::uint32_t block) const;
  const RowChoice& choice() const { return choice_; }
  void choose(const RowChoice& choice);
  // The keys of --sort. An error names a wrong one; false: the capture must be read again for them.
  Result<bool> sort_by(const std::string& keys);
  const std::string& sort_keys() const { return sort_; }

  // A choice by names, for the rows of another reading.
  struct NamedChoice {
    RowChoice choice;                                             // without pointers
    std::uint32_t leader = 0;                                     // event
    std::optional<std::pair<std::uint32_t, std::string>> thread;  // tid and name
    std::optional<std::string> module;                            // path; empty: none is known
  };
  NamedChoice named(const RowChoice& choice) const;
  // Nothing: the thread or module has no samples here.
  std::optional<RowChoice> found(const NamedChoice& named) const;
  // The choice of another capture's rows, by the names of its event, thread and module.
  std::optional<RowChoice> alike(const WalkedRows& other) const;

  enum class Count : std::uint8_t { No, Yes };
  std::string title(Count count) const;  // with what the samples sum up to, or without
  // By what rows are sorted first: the header of a column.
  std::string order_name() const;
  std::size_t order_count() const { return columns().size(); }

  // About rows; `row` counts those that are shown.
  RowFacts facts(std::size_t row) const;
  bool has_thread_key() const;
  // With the sort key `socket`; nothing: without it.
  std::optional<std::uint32_t> socket_of(std::size_t row) const;
  bool has_children() const { return text_.has_children; }
  // A key that looks at more of a sample than its thread, module and function; null: none.
  const SortKey* other_key() const;
  bool has_key(std::string_view name) const;
  // Of 100, by itself or with what it calls.
  double share(std::size_t row, bool has_callees) const;
  // The columns and cells of keys alone.
  std::vector<BrowsedColumn> key_columns() const;
  std::vector<Cell> key_cells(std::size_t row) const;
  // The first row of a function, by Function::symbol; nothing: none.
  std::optional<std::size_t> row_of(std::uint32_t symbol) const;
  const Function& function(std::uint32_t id) const { return sink_->functions()[id]; }

  // Who called a function, or what it called, as a call graph, and what of all samples was in it or below.
  enum class Side : std::uint8_t { Callers, Callees };
  std::vector<BrowsedNode> graph_of(std::uint32_t symbol, Side side);
  std::string share_of(std::uint32_t symbol);
  // All call chains as one graph that begins with the caller, of what is at least a thousandth.
  std::vector<BrowsedNode> whole_graph();

  std::size_t size() const override { return rows_.size(); }
  std::vector<BrowsedColumn> columns() const override;
  std::vector<Cell> cells(std::size_t row) const override;
  std::string identity(std::size_t row) const override;
  bool has_graph(std::size_t row) const override;
  std::vector<BrowsedNode> graph(std::size_t row) const override;

 private:
  void count();   // entries anew
  void order();   // their order
  void filter();  // those of them that are shown
  const KeyUse* socket_key() const;
  bool is_in_module(const Function& function) const;
  std::vector<BrowsedNode> nodes_of(std::span<const Strand> strands, std::uint64_t row_total,
                                    std::optional<double> least = {}) const;
  // Nothing: whole chains.
  std::vector<Strand> strands_of(std::optional<std::uint32_t> symbol, Side side);
  std::string frame_text(std::uint32_t function) const;
  Column::Kind weight() const { return text_.has_children ? Column::Kind::Children : Column::Kind::Overhead; }

  const ReportSink* sink_;
  const ReportOptions* options_;
  TextOptions text_;
  ReportColumns columns_;
  std::string sort_;
  std::unique_ptr<EntryIndex> index_;
  std::unique_ptr<Entries> entries_;
  mutable CallTree tree_;  // built anew for each graph
  std::vector<std::uint32_t> blocks_;
  RowChoice choice_;
  FullValues totals_;
  std::vector<report::Cell> cells_;         // of the columns that are shown
  std::vector<std::uint32_t> sorted_;       // all entries
  std::vector<std::uint32_t> rows_;         // those that are shown
  std::vector<std::uint32_t> kept_frames_;  // of strands_of()
};

}  // namespace tacho::report
