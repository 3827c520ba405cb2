#include "report/views/tui/compared_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace tacho::report {

void ComparedRows::changed(bool has_before) {
  has_before_ = has_before;
  rows_.clear();
  std::unordered_map<std::string, std::size_t> by_keys;
  for (std::size_t row = 0; row < after_->size(); ++row) {
    const double share = after_->share(row, has_callees_);
    if (share == 0) continue;
    by_keys.emplace(after_->identity(row), rows_.size());
    rows_.push_back({.after = row, .before = {}, .share_after = share, .share_before = 0});
  }
  for (std::size_t row = 0; has_before && row < before_->size(); ++row) {
    const double share = before_->share(row, has_callees_);
    if (share == 0) continue;
    const auto found = by_keys.find(before_->identity(row));
    if (found == by_keys.end()) {
      rows_.push_back({.after = {}, .before = row, .share_after = 0, .share_before = share});
    } else {
      rows_[found->second].before = row;
      rows_[found->second].share_before = share;
    }
  }
  sort();
}

void ComparedRows::count_callees(bool does) {
  has_callees_ = does;
  changed(has_before_);
}

void ComparedRows::order_by(Order order) {
  order_ = order;
  sort();
}

// By absolute difference, as delta-abs of perf diff.
void ComparedRows::sort() {
  std::ranges::stable_sort(rows_, std::ranges::greater(), [this](const Row& row) {
    return order_ == Order::Delta    ? std::abs(row.delta())
           : order_ == Order::Before ? row.share_before
                                     : row.share_after;
  });
}

std::vector<BrowsedColumn> ComparedRows::columns() const {
  std::vector<BrowsedColumn> columns = {
      {.header = "Before", .width = 8, .is_name = false, .is_right = true, .is_share = true},
      {.header = "After", .width = 8, .is_name = false, .is_right = true, .is_share = true},
      {.header = "Delta", .width = 8, .is_name = false, .is_right = true, .is_share = true}};
  const auto widths = has_before_ ? before_->key_columns() : std::vector<BrowsedColumn>();
  std::size_t key = 0;
  for (BrowsedColumn column : after_->key_columns()) {
    if (key < widths.size()) column.width = std::max(column.width, widths[key].width);
    ++key;
    columns.push_back(std::move(column));
  }
  return columns;
}

std::vector<BrowsedRows::Cell> ComparedRows::cells(std::size_t number) const {
  const Row& row = rows_[number];
  const auto share = [](double part, bool is_there) {
    return Cell{is_there ? fmt::format("{:7.2f}%", part) : std::string(8, ' '), part};
  };
  std::vector<Cell> cells = {share(row.share_before, row.before.has_value()),
                             share(row.share_after, row.after.has_value()),
                             {fmt::format("{:+7.2f}%", row.delta()), std::abs(row.delta())}};
  for (Cell& key : row.after ? after_->key_cells(*row.after) : before_->key_cells(*row.before))
    cells.push_back(std::move(key));
  return cells;
}

std::string ComparedRows::identity(std::size_t row) const {
  return rows_[row].after ? after_->identity(*rows_[row].after) : before_->identity(*rows_[row].before);
}

}  // namespace tacho::report
