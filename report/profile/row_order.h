// The order in which the rows of a report stand: perf's, ties included.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "report/profile/sort_key.h"

namespace tacho::report {

// A number that a column shows and rows are sorted by, or a key.
struct Column {
  enum class Kind : std::uint8_t {
    Children,
    Overhead,
    OverheadSys,
    OverheadUser,
    OverheadGuestSys,
    OverheadGuestUser,
    Samples,
    Period,
    Key,
  };
  Kind kind = Kind::Key;
  std::size_t key = 0;  // index of a KeyUse
  bool operator==(const Column&) const = default;
};

// What decides between rows of one thread that have equal children: the lesser depth stands first.
struct RowDepth {
  const Thread* thread = nullptr;
  std::uint32_t depth = 0;
};

// Rows with their numbers, one for each member of a group of events.
struct WeighedRows {
  std::span<const RowFacts> rows;
  std::size_t members = 1;
  std::size_t first_member = 0;  // whose numbers decide first
  std::function<std::uint64_t(Column::Kind, std::uint32_t row, std::size_t member)> value;
  std::span<const RowDepth> depths;      // of each row; empty: they do not decide
  std::span<const std::uint32_t> met{};  // the rows' numbers as they were met; empty: by number
};

class PackedValues;

class RowOrder {
 public:
  // `keys` and `facts` must outlive this.
  RowOrder(std::span<const KeyUse> keys, const SampleFacts& facts) : keys_(keys), facts_(&facts) {}

  // Numbers of rows in the order in which perf goes through its own table of them: that of the keys in
  // `columns`.
  std::vector<std::uint32_t> found(std::span<const Column> columns, std::span<const RowFacts> rows,
                                   std::span<const std::uint32_t> met = {}) const;
  // In the order of the report: by `columns`, the first one first, weights descending. Equal rows stay in the
  // order in which they are found by the keys in `found_by`.
  std::vector<std::uint32_t> sorted(std::span<const Column> columns, std::span<const Column> found_by,
                                    const WeighedRows& weighed) const;

 private:
  std::vector<std::uint64_t> ranks_of(std::size_t key, std::span<const RowFacts> rows) const;
  PackedValues packed(std::span<const Column> columns, const WeighedRows& weighed) const;
  KeyShow show(std::size_t key) const { return {keys_[key], *facts_}; }

  std::span<const KeyUse> keys_;
  const SampleFacts* facts_;
};

}  // namespace tacho::report
