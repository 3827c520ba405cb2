// How many samples fell into each box of time and value. Boxes are widened while samples come, so one pass
// does, and memory follows the number of boxes: a pipe is read like a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "report/profile/distribution.h"

namespace tacho::report {

// How boxes are cut. Columns and linear rows are as long as is said here, or 2, 5, 10, 20, ... times as long
// where there would be too many otherwise.
struct HeatScale {
  static constexpr int kMostBits = 3;
  std::uint64_t interval = 1000;                // ns of a column, at least
  bool is_linear = false;                       // rows of equal height
  std::uint64_t step = 1;                       // of linear rows, at least
  int bits = kMostBits;                         // of logarithmic rows: at most 2^bits for each power of two
  std::optional<Bucket> always;                 // values that have rows, whether there are samples or not
  std::size_t most_columns = 0, most_rows = 0;  // at least 10
};

struct HeatMap {
  std::uint64_t begin = 0, interval = 0;  // ns: of the first column, of each
  std::size_t columns = 0;
  std::vector<Bucket> rows;           // the lowest values first; `count`: of all columns
  std::vector<std::uint64_t> counts;  // a column after the other, the lowest row first
  std::uint64_t total = 0, most = 0;  // most: of a box

  std::uint64_t at(std::size_t column, std::size_t row) const { return counts[column * rows.size() + row]; }
  std::uint64_t begin_of(std::size_t column) const { return begin + column * interval; }
  bool is_empty() const { return total == 0; }
};

class HeatGrid {
 public:
  explicit HeatGrid(const HeatScale& scale)
      : scale_(scale), interval_(scale.interval), step_(scale.step), fine_(rows_of(step_)) {}

  void add(std::uint64_t time, std::int64_t value, std::uint64_t count);
  HeatMap finish() const;

 private:
  // A box as fine as they are kept: up to ten times as many as are shown, in both directions.
  struct Key {
    std::uint64_t column = 0;
    std::int64_t row = 0;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return (key.column * 0x9e3779b97f4a7c15U) ^ (static_cast<std::uint64_t>(key.row) * 0xc2b2ae3d27d4eb4fU);
    }
  };
  Distribution rows_of(std::uint64_t step) const {
    return scale_.is_linear ? Distribution(step) : Distribution(0, scale_.bits);
  }
  void widen();
  Distribution shown_rows() const;

  HeatScale scale_;
  std::uint64_t interval_, step_;  // at present
  Distribution fine_;              // rows at present
  std::unordered_map<Key, std::uint64_t, Hash> cells_;
  std::uint64_t first_ = 0, last_ = 0;     // ns
  std::int64_t lowest_ = 0, highest_ = 0;  // values
  std::uint64_t total_ = 0;
};

}  // namespace tacho::report
