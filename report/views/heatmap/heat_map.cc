#include "report/views/heatmap/heat_map.h"

#include <algorithm>
#include <utility>

namespace tacho::report {
namespace {

__extension__ using Wide = __int128;

constexpr std::uint64_t kFiner = 10;                            // boxes that are kept for one that is shown
constexpr std::uint64_t kSteps[] = {1, 2, 5, 10, 20, 50, 100};  // what a fine box may be widened by

// Rows between two values, both included.
std::uint64_t count_of(const Distribution& rows, std::int64_t low, std::int64_t high) {
  return static_cast<std::uint64_t>(Wide{rows.index_of(high)} - rows.index_of(low)) + 1;
}

// Columns from one time to another, both included.
std::uint64_t count_of(std::uint64_t interval, std::uint64_t first, std::uint64_t last) {
  return last / interval - first / interval + 1;
}

}  // namespace

void HeatGrid::add(std::uint64_t time, std::int64_t value, std::uint64_t count) {
  if (cells_.empty()) {
    first_ = last_ = time;
    lowest_ = highest_ = value;
    if (scale_.always) {
      lowest_ = std::min(value, scale_.always->low);
      highest_ = std::max(value, scale_.always->high);
    }
  }
  const bool is_inside = time >= first_ && time <= last_ && value >= lowest_ && value <= highest_;
  if (!is_inside) {
    first_ = std::min(first_, time);
    last_ = std::max(last_, time);
    lowest_ = std::min(lowest_, value);
    highest_ = std::max(highest_, value);
    widen();
  }
  cells_[{time / interval_, fine_.index_of(value)}] += count;
  total_ += count;
}

// Each finer box is in one wider box: columns and rows begin at multiples of their length.
void HeatGrid::widen() {
  const std::uint64_t interval = interval_, step = step_;
  while (count_of(interval_, first_, last_) > kFiner * scale_.most_columns) interval_ *= kFiner;
  while (scale_.is_linear && count_of(rows_of(step_), lowest_, highest_) > kFiner * scale_.most_rows)
    step_ *= kFiner;
  if (interval_ == interval && step_ == step) return;
  const std::uint64_t columns = interval_ / interval;
  const Distribution wider = rows_of(step_);
  for (const auto finer = std::exchange(cells_, {}); const auto& [key, count] : finer)
    cells_[{key.column / columns, wider.index_of(fine_.bucket_at(key.row).low)}] += count;
  fine_ = wider;
}

Distribution HeatGrid::shown_rows() const {
  if (scale_.is_linear) {
    for (const std::uint64_t by : kSteps) {
      const Distribution rows(step_ * by);
      if (count_of(rows, lowest_, highest_) <= scale_.most_rows) return rows;
    }
    return Distribution(step_ * kSteps[std::size(kSteps) - 1]);
  }
  for (int bits = scale_.bits; bits > 0; --bits) {
    const Distribution rows(0, bits);
    if (count_of(rows, lowest_, highest_) <= scale_.most_rows) return rows;
  }
  return Distribution();
}

HeatMap HeatGrid::finish() const {
  HeatMap map;
  if (cells_.empty()) return map;
  std::uint64_t by = 1;
  for (const std::uint64_t step : kSteps) {
    by = step;
    if (count_of(interval_ * by, first_, last_) <= scale_.most_columns) break;
  }
  map.interval = interval_ * by;
  const std::uint64_t first_column = first_ / map.interval;
  map.begin = first_column * map.interval;
  map.columns = count_of(map.interval, first_, last_);
  const Distribution rows = shown_rows();
  const std::int64_t lowest_row = rows.index_of(lowest_);
  // Powers of two that are too many stand together.
  const std::uint64_t count = count_of(rows, lowest_, highest_);
  const std::uint64_t together = (count + scale_.most_rows - 1) / scale_.most_rows;
  for (std::uint64_t row = 0; row < count; row += together) {
    const std::uint64_t last = std::min(row + together, count) - 1;
    map.rows.push_back({rows.bucket_at(lowest_row + static_cast<std::int64_t>(row)).low,
                        rows.bucket_at(lowest_row + static_cast<std::int64_t>(last)).high, 0});
  }
  map.counts.resize(map.columns * map.rows.size());
  for (const auto& [key, samples] : cells_) {
    const std::int64_t index = rows.index_of(fine_.bucket_at(key.row).low);
    const std::size_t row = static_cast<std::uint64_t>(index - lowest_row) / together;
    const std::size_t column = key.column / by - first_column;
    std::uint64_t& box = map.counts[column * map.rows.size() + row];
    box += samples;
    map.rows[row].count += samples;
    map.most = std::max(map.most, box);
  }
  map.total = total_;
  return map;
}

}  // namespace tacho::report
