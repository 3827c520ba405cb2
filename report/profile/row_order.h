// The order of a report's rows. It is total: by the columns one after another, weights descending, keys by
// value; if a function is a key, then by its address. After the weight of children comes the depth of call
// graphs, so that callers are above callees. Rows that are equal in all of these are in the order of their
// first samples.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "format/base/large_pages.h"
#include "format/base/worker_pool.h"
#include "report/profile/sort_keys.h"

namespace tacho::report {

// A column of numbers, or of a key.
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
    Latency,
    LatencyChildren,
    Key,
  };
  Kind kind = Kind::Key;
  std::size_t key = 0;  // index of a KeyUse
  bool operator==(const Column&) const = default;
};

constexpr bool is_latency(Column::Kind kind) {
  return kind == Column::Kind::Latency || kind == Column::Kind::LatencyChildren;
}
// Whether the column includes the weights of callees.
constexpr bool is_of_children(Column::Kind kind) {
  return kind == Column::Kind::Children || kind == Column::Kind::LatencyChildren;
}

// A table with an element for each row of the report.
template <class T>
using RowTable = std::vector<T, format::LargePages<T>>;

// The facts of the rows. A long report has a function for nearly every row, and few groups of rows that
// differ by their function only.
class RowsToOrder {
 public:
  struct Cell {
    FunctionId function{};
    GroupId group{};
  };
  // Rows without groups.
  explicit RowsToOrder(std::span<const RowFacts> rows) : facts_(rows) {}
  // Each row is a function in a group. `of_group` returns the facts of a group without the function. It is
  // called repeatedly: a table of the results could be as large as the report.
  RowsToOrder(std::span<const Cell> cells, std::size_t groups,
              std::function<RowFacts(GroupId group)> of_group,
              const StableArray<Function, FunctionId>& functions)
      : cells_(cells), groups_(groups), of_group_(std::move(of_group)), functions_(&functions) {}

  std::size_t size() const { return functions_ != nullptr ? cells_.size() : facts_.size(); }
  const Function& function(std::uint32_t row) const {
    return functions_ != nullptr ? (*functions_)[cells_[row].function] : *facts_[row].function;
  }
  RowFacts operator[](std::uint32_t row) const {
    if (functions_ == nullptr) return facts_[row];
    RowFacts facts = of_group_(cells_[row].group);
    facts.function = &function(row);
    return facts;
  }
  // The number of groups; 0: rows without groups.
  std::size_t groups() const { return groups_; }
  GroupId group(std::uint32_t row) const { return cells_[row].group; }

 private:
  std::span<const RowFacts> facts_;
  std::span<const Cell> cells_;
  std::size_t groups_ = 0;
  std::function<RowFacts(GroupId group)> of_group_;
  const StableArray<Function, FunctionId>* functions_ = nullptr;  // null: rows without groups
};

// What RowOrder sorts: rows, and their numbers for each member of a group of events.
struct SortInput {
  RowsToOrder rows;
  std::size_t members = 1;
  std::size_t first_member = 0;  // the member whose numbers are compared first
  // Sets `values` to a member's number of this kind, for each row.
  std::function<void(Column::Kind, std::size_t member, std::span<std::uint64_t> values)> values;
  // Rows with equal children are sorted by this, ascending. Null: not sorted by it.
  std::function<std::uint32_t(std::uint32_t row)> depth;
  // The threads that sort; null: the caller's thread. With a pool, several threads read the arguments at the
  // same time.
  format::WorkerPool* pool = nullptr;
  std::function<void()> beside{};  // runs at the same time; null: nothing
};

class RowOrder {
 public:
  // `keys` and `facts` must outlive this.
  RowOrder(std::span<const KeyUse> keys, const SampleFacts& facts) : keys_(keys), facts_(&facts) {}

  // The row numbers in the order of the report: by the first of `columns`, then by the second, and so on.
  std::vector<std::uint32_t> sorted(std::span<const Column> columns, const SortInput& input) const;

 private:
  // The values of a column by which rows are sorted, ascending: one of the two is set.
  struct OfColumn {
    RowTable<std::uint64_t> values;
    RowTable<std::uint32_t> ranks;
  };
  using MakeValues = std::function<OfColumn()>;
  std::vector<MakeValues> columns_of(std::span<const Column> columns, const SortInput& input) const;
  RowTable<std::uint32_t> ranks_of(std::size_t key, const RowsToOrder& rows) const;
  KeyShow show(std::size_t key) const { return {keys_[key], *facts_}; }

  std::span<const KeyUse> keys_;
  const SampleFacts* facts_;
};

}  // namespace tacho::report
