// The rows of a report in levels (--hierarchy): a tree. The first level has a row for each value of the first
// sort keys, the second one for each value of the next keys, and so on. A row's weight is the sum of the rows
// below it.
//
// Filters work as in perf, which makes the tree of all samples: a row is shown if a row below it passes the
// filter, with its unfiltered weight. The filtered key (thread, module or function) is on a level of its own,
// or on none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "report/profile/entries.h"
#include "report/profile/row_order.h"
#include "report/profile/sort_keys.h"
#include "report/samples/tables.h"

namespace tacho::report {

struct HierarchyLevel {
  std::vector<Column> columns;
  FilterBits decides = 0;  // the filters that test one of its keys
};

struct HierarchyOptions {
  std::vector<HierarchyLevel> levels;  // at least one
  std::vector<Column> sorted;          // the order of the rows below one row
  FilterBits filters = 0;              // the active ones
  FunctionTest is_symbol_shown;  // tests the function of a row's first sample, on any level; null: no filter
};

class Hierarchy {
 public:
  struct Row {
    EntryId entry{};  // the first entry of the row
    TreeRowId above = kNo<TreeRowId>;
    std::uint32_t level = 0;
    FilterBits filtered = 0;
    bool is_leaf = false;
  };
  // `entries` were made with `keeps_filtered`. The arguments must outlive this.
  Hierarchy(const Entries& entries, std::span<const KeyUse> keys, const SampleFacts& facts,
            HierarchyOptions options);

  Ids<TreeRowId> ids() const { return rows_.ids(); }
  const Row& row(TreeRowId id) const { return rows_[id]; }
  const HierarchyLevel& level(const Row& row) const { return options_.levels[row.level]; }
  // The texts of a row's keys.
  RowFacts facts(TreeRowId id) const;
  std::uint64_t value(Column::Kind kind, TreeRowId row, std::size_t member) const;
  std::size_t members() const { return entries_->members(); }
  // The sum of the weights of the first level, without filtered rows.
  std::uint64_t total(std::size_t member, bool is_relative, Column::Kind kind = Column::Kind::Overhead) const;
  // All rows in printing order: each before the rows below it.
  const std::vector<TreeRowId>& shown() const { return shown_; }
  // The rows right below one.
  std::span<const TreeRowId> below(TreeRowId row) const { return below_.of(row); }
  // The entries of a leaf.
  std::span<const EntryId> entries_of(TreeRowId row) const { return entries_of_.of(row); }

 private:
  template <class Id>
  struct Lists {  // a list for each row
    std::vector<std::uint32_t> first;
    std::vector<Id> ids;
    std::span<const Id> of(TreeRowId row) const {
      const std::size_t at = index_of(row);
      return std::span(ids).subspan(first[at], first[at + 1] - first[at]);
    }
  };
  template <class Id>
  static Lists<Id> lists_of(const IdVector<Id, TreeRowId>& owners, std::size_t count);
  void add_entry(EntryId entry);
  TreeRowId row_of(EntryId entry, TreeRowId above, std::uint32_t level);
  void apply_filters(TreeRowId id);
  void put_in_order(std::span<const TreeRowId> siblings);

  const Entries* entries_;
  std::span<const KeyUse> keys_;
  const SampleFacts* facts_;
  HierarchyOptions options_;
  IdVector<TreeRowId, Row> rows_;
  std::vector<std::uint64_t> values_;                   // by row, member, and kind of number
  DistinctLists<TreeRowId, std::uint64_t> identities_;  // the row above, and the keys of the level
  std::vector<std::uint64_t> words_;                    // scratch: of a row
  IdVector<EntryId, TreeRowId> leaf_of_;
  Lists<TreeRowId> below_;
  Lists<EntryId> entries_of_;
  std::vector<TreeRowId> top_, shown_;
};

}  // namespace tacho::report
