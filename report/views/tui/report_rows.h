// ReportRows: rows of a report that are zoomed, filtered and sorted from the profile, without reading the
// capture again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/views/report/report_table.h"
#include "report/views/report/report_text.h"
#include "report/views/tui/browser.h"

namespace tacho::report {

// Zooms, filter and order of the rows.
struct RowChoice {
  BlockId block{};  // an event, or a group of them
  // Zooms; empty: all.
  const Thread* thread = nullptr;
  std::optional<std::uint32_t> process;  // pid
  std::optional<const symbolize::Module*> module;
  bool has_kernel_only = false;
  std::optional<std::uint32_t> socket;
  std::string symbol;  // part of function names
  bool counts_samples = false;
  bool is_relative = false;  // percent of the zoomed samples
  double percent_limit = 0;
  bool names_modules = false;  // in call graphs
  std::size_t order = 0;       // column by which rows are sorted first
  std::size_t member = 0;      // of a group: the event by which rows are sorted
};

class ReportRows : public BrowsedRows {
 public:
  // Both must outlive it.
  ReportRows(const ReportTable& table, const ReportOptions& options);

  // Events with samples, as numbers of blocks.
  const std::vector<BlockId>& blocks() const { return blocks_; }
  std::string name_of(BlockId block) const;  // of the block's event or group
  std::uint64_t samples_of(BlockId block) const;
  const RowChoice& choice() const { return choice_; }
  void choose(const RowChoice& choice);
  // Whether the choice's percent limit holds (it does at first). Not in a comparison: a row below it in one
  // capture would seem to be missing there.
  void use_limit(bool has_limit);
  // Sets sort keys (--sort). False: the profile lacks facts for them, so the capture must be read again. An
  // error names a wrong key.
  Result<bool> sort_by(const std::string& keys);
  const std::string& sort_keys() const { return sort_; }

  // A choice that names its thread and module, for the rows of another session.
  struct NamedChoice {
    RowChoice choice;                                             // without pointers
    std::uint32_t leader = 0;                                     // event
    std::optional<std::pair<std::uint32_t, std::string>> thread;  // tid and name
    std::optional<std::string> module;                            // path; empty: unknown module
  };
  NamedChoice named(const RowChoice& choice) const;
  // nullopt: the thread or module has no samples here.
  std::optional<RowChoice> found(const NamedChoice& named) const;
  // The same choice in another capture's rows, by names of event, thread and module.
  std::optional<RowChoice> same_choice(const ReportRows& other) const;
  // For each block of `other` the block of the same event that has samples; nullopt: none. The n-th event of
  // a name is the n-th of it there. A group without an equal is the block with its leader's name.
  IdVector<BlockId, std::optional<BlockId>> same_blocks(const ReportRows& other) const;

  enum class Count : std::uint8_t { No, Yes };
  std::string title(Count count) const;  // with or without the number of samples

  // `row`: index of the shown rows.
  RowFacts facts(std::size_t row) const { return entries_->facts(rows_[row]); }
  // Whether all samples of a row are of one thread; one thread or thread name; one function; one module.
  bool has_thread_key() const { return has_key_of(KeyOf::Thread); }
  bool has_comm() const { return has_thread_key() || has_key_of(KeyOf::Comm); }
  bool has_function() const { return has_key("symbol"); }
  bool has_module() const { return has_key("dso") || has_function(); }
  // With the sort key `socket`; otherwise nullopt.
  std::optional<std::uint32_t> socket_of(std::size_t row) const;
  bool has_children() const { return text_.has_children; }
  // A sort key other than those of thread, module and function; null: none.
  const SortKey* other_key() const;
  bool has_key(std::string_view name) const;
  std::span<const KeyUse> keys() const { return columns_.keys; }
  // The shown rows with their weights, valid until another choice.
  RowBlock block() const {
    return {&table_->profile().blocks()[choice_.block], entries_.get(), rows_, &totals_};
  }
  // Percent, self or with callees.
  double share(std::size_t row, bool has_callees) const;
  // The columns and cells of sort keys only.
  std::vector<BrowsedColumn> key_columns() const;
  std::vector<Cell> key_cells(std::size_t row) const;
  const Function& function(FunctionId id) const { return table_->functions()[id]; }

  // A call graph of a function's callers or callees, and its percentage with callees.
  enum class Side : std::uint8_t { Callers, Callees };
  std::vector<BrowsedNode> graph_of(SymbolId symbol, Side side);
  std::string share_of(SymbolId symbol);
  // A call graph of all call chains, callers first, without nodes below 0.1 %.
  std::vector<BrowsedNode> whole_graph();

  std::size_t size() const override { return rows_.size(); }
  std::vector<BrowsedColumn> columns() const override;
  std::vector<Cell> cells(std::size_t row) const override;
  std::string identity(std::size_t row) const override;
  bool has_graph(std::size_t row) const override;
  std::vector<BrowsedNode> graph(std::size_t row) const override;

 private:
  void count_entries();  // makes the entries
  void order();          // sorts them
  void filter();         // selects the shown ones
  bool has_key_of(KeyOf of) const;
  const KeyUse* socket_key() const;
  template <class Value>
  std::vector<Value> of_keys(std::vector<Value> all) const;
  bool is_in_module(const Function& function) const;
  std::vector<BrowsedNode> nodes_of(std::span<const Strand> strands, std::uint64_t row_total,
                                    std::optional<double> least = {}) const;
  // nullopt: full chains.
  std::vector<Strand> strands_of(std::optional<SymbolId> symbol, Side side);
  std::string frame_text(FunctionId function) const;
  Column::Kind weight() const { return text_.has_children ? Column::Kind::Children : Column::Kind::Overhead; }

  const ReportTable* table_;
  const ReportOptions* options_;
  TextOptions text_;
  ReportColumns columns_;
  std::string sort_;
  std::unique_ptr<EntryIndex> index_;
  std::unique_ptr<Entries> entries_;
  // Whether the entries count a row of the profile.
  std::function<bool(const ProfileRow&, const Function&)> is_counted_;
  mutable CallTree tree_;  // rebuilt for each graph
  std::vector<BlockId> blocks_;
  RowChoice choice_;
  bool has_limit_ = true;
  FullValues totals_;
  std::vector<report::Cell> cells_;      // of the shown columns
  std::vector<EntryId> sorted_;          // all entries
  std::vector<EntryId> rows_;            // the shown ones
  std::vector<FunctionId> kept_frames_;  // of strands_of()
};

}  // namespace tacho::report
