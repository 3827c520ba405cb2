// The rows of a report in levels (--hierarchy): a tree whose first level has a row for each value of the
// first sort keys, the second level one for each value of the next keys, and so on. A row's weight is the sum
// of the rows below it.
//
// Filters work as in perf, which makes the tree of all samples: a row is shown when a row below it passes the
// filter, with the weight that it has without a filter. The filtered key (thread, module or function) has its
// own level or none.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "report/profile/entries.h"

namespace tacho::report {

struct HierarchyLevel {
  std::vector<Column> columns;
  FilterBits decides = 0;  // the filters that look at one of its keys
};

struct HierarchyOptions {
  std::vector<HierarchyLevel> levels;  // at least one
  std::vector<Column> sorted;          // rows of one level under one row stand in this order
  FilterBits filters = 0;              // the active ones
  FunctionTest is_symbol_shown;        // of any level, by the function of its first sample; null: all are
};

class Hierarchy {
 public:
  static constexpr std::uint32_t kNone = ~0U;
  struct Row {
    std::uint32_t entry = 0;  // the first of the entries that came here
    std::uint32_t above = kNone;
    std::uint32_t level = 0;
    FilterBits filtered = 0;
    bool is_leaf = false;
  };
  // `entries`: made with `keeps_filtered`. What is passed must outlive this.
  Hierarchy(const Entries& entries, std::span<const KeyUse> keys, const SampleFacts& facts,
            HierarchyOptions options);

  std::size_t size() const { return rows_.size(); }
  const Row& row(std::uint32_t number) const { return rows_[number]; }
  const HierarchyLevel& level(const Row& row) const { return options_.levels[row.level]; }
  // The texts of a row's keys.
  RowFacts facts(std::uint32_t number) const;
  std::uint64_t value(Column::Kind kind, std::uint32_t number, std::size_t member) const;
  std::size_t members() const { return entries_->members(); }
  // The sum of the weights of the first level, without filtered rows.
  std::uint64_t total(std::size_t member, bool is_relative, Column::Kind kind = Column::Kind::Overhead) const;
  // All rows in printing order: each before the rows below it.
  const std::vector<std::uint32_t>& shown() const { return shown_; }
  // The rows right below one.
  std::span<const std::uint32_t> below(std::uint32_t number) const;
  // The entries of a leaf.
  std::span<const std::uint32_t> entries_of(std::uint32_t number) const;

 private:
  struct Lists {  // of numbers, one list for each row
    std::vector<std::uint32_t> first, numbers;
    std::span<const std::uint32_t> of(std::uint32_t row) const {
      return std::span(numbers).subspan(first[row], first[row + 1] - first[row]);
    }
  };
  static Lists lists_of(std::span<const std::uint32_t> owners, std::size_t count);
  void add(std::uint32_t entry);
  std::uint32_t row_of(std::uint32_t entry, std::uint32_t above, std::uint32_t level);
  void apply_filters(std::uint32_t number);
  void put_in_order(std::span<const std::uint32_t> siblings);

  const Entries* entries_;
  std::span<const KeyUse> keys_;
  const SampleFacts* facts_;
  HierarchyOptions options_;
  std::vector<Row> rows_;
  std::vector<std::uint64_t> values_;  // of each row, of each member: one for each of the kinds that are kept
  std::vector<std::uint64_t> words_, scratch_;  // identities of rows' keys
  std::vector<std::uint32_t> words_at_;         // by row
  IndexTable by_keys_;
  std::vector<std::uint32_t> leaf_of_;  // by entry
  Lists below_, entries_of_;
  std::vector<std::uint32_t> top_, shown_;
};

}  // namespace tacho::report
