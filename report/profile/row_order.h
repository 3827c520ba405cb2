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

// What is sorted: rows, and their numbers for each member of a group of events.
struct SortInput {
  std::size_t rows = 0;
  // Called repeatedly for each row: a table of the results could be as large as the report.
  std::function<RowFacts(std::uint32_t row)> facts;
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

// The row numbers in the order of the report: by the first of `columns`, then by the second, and so on.
// `keys`: those of columns.
std::vector<std::uint32_t> sorted_rows(std::span<const KeyUse> keys, const SampleFacts& facts,
                                       std::span<const Column> columns, const SortInput& input);

}  // namespace tacho::report
