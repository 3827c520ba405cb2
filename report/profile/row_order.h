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

// Rows with their numbers, one for each member of a group of events.
struct WeighedRows {
  std::span<const RowFacts> rows;
  std::size_t members = 1;
  std::function<std::uint64_t(Column::Kind, std::uint32_t row, std::size_t member)> value;
  // What decides between rows of equal children. Null: the columns behind.
  std::function<std::strong_ordering(std::uint32_t, std::uint32_t)> deeper;
};

class RowOrder {
 public:
  // `keys` and `facts` must outlive this.
  RowOrder(std::span<const KeyUse> keys, const SampleFacts& facts) : keys_(keys), facts_(&facts) {}

  // Numbers of rows in the order in which perf goes through its own table of them: that of the keys in
  // `columns`.
  std::vector<std::uint32_t> found(std::span<const Column> columns, std::span<const RowFacts> rows) const;
  // In the order of the report: by `columns`, the first one first, weights descending. Equal rows stay in the
  // order in which they are found by the keys in `found_by`.
  std::vector<std::uint32_t> sorted(std::span<const Column> columns, std::span<const Column> found_by,
                                    const WeighedRows& weighed) const;

 private:
  // What rows are compared by, as numbers: smaller ones first.
  struct Ranks {
    std::vector<std::uint64_t> words;  // `width` of each row
    std::size_t width = 0;
    std::size_t depth_at = ~std::size_t{0};  // before which of them the depth of chains decides; none
  };
  std::vector<std::uint64_t> ranks_of(std::size_t key, std::span<const RowFacts> rows) const;
  Ranks ranks(std::span<const Column> columns, const WeighedRows& weighed) const;
  KeyShow show(std::size_t key) const { return {keys_[key], *facts_}; }

  std::span<const KeyUse> keys_;
  const SampleFacts* facts_;
};

}  // namespace tacho::report
