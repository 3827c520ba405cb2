#include "report/profile/row_order.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>

namespace tacho::report {
namespace {

// perf puts rows into red-black trees one after another, by comparisons that contradict each other here and
// there: the depth of a chain decides between rows of one thread only, the name only where a call was
// inlined, the module only where a name is known. What comes of it depends on the way; std::multiset is such
// a tree and goes the same way.
template <class IsBefore>
std::vector<std::uint32_t> in_tree_order(std::span<const std::uint32_t> rows, const IsBefore& is_before) {
  std::multiset<std::uint32_t, IsBefore> tree(is_before);
  for (const std::uint32_t row : rows) tree.insert(row);
  return {tree.begin(), tree.end()};
}

}  // namespace

// Each value that order() tells from others gets a number, once: rows are compared many times.
std::vector<std::uint64_t> RowOrder::ranks_of(std::size_t key, std::span<const RowFacts> rows) const {
  const KeyShow shown = show(key);
  const SortKey& sort_key = *keys_[key].key;
  const auto value_of = sort_key.ordered_by != nullptr ? sort_key.ordered_by : sort_key.identity;
  std::unordered_map<std::uint64_t, std::uint64_t> ranks;  // by value; at first, a row that has it
  for (std::size_t row = 0; row < rows.size(); ++row) ranks.try_emplace(value_of(shown, rows[row]), row);
  std::vector<std::uint64_t*> values;
  for (auto& [value, row] : ranks) values.push_back(&row);
  std::ranges::sort(values, [&](const std::uint64_t* a, const std::uint64_t* b) {
    return sort_key.order(shown, rows[*a], rows[*b]) < 0;
  });
  std::uint64_t rank = 0, before = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t row = *values[i];
    if (i > 0 && sort_key.order(shown, rows[before], rows[row]) != 0) ++rank;
    before = row;
    *values[i] = rank;
  }
  std::vector<std::uint64_t> all;
  all.reserve(rows.size());
  for (const RowFacts& row : rows) all.push_back(ranks[value_of(shown, row)]);
  return all;
}

RowOrder::Ranks RowOrder::ranks(std::span<const Column> columns, const WeighedRows& weighed) const {
  const auto rows = weighed.rows;
  Ranks ranks;
  for (const Column& column : columns) ranks.width += column.kind == Column::Kind::Key ? 1 : weighed.members;
  ranks.words.resize(ranks.width * rows.size());
  std::size_t at = 0;
  for (const Column& column : columns) {
    if (column.kind == Column::Kind::Key) {
      const auto of_key = ranks_of(column.key, rows);
      for (std::size_t row = 0; row < rows.size(); ++row) ranks.words[row * ranks.width + at] = of_key[row];
      ++at;
      continue;
    }
    for (std::size_t member = 0; member < weighed.members; ++member, ++at) {
      for (std::uint32_t row = 0; row < rows.size(); ++row)
        ranks.words[row * ranks.width + at] = ~weighed.value(column.kind, row, member);
    }
    if (column.kind == Column::Kind::Children && weighed.deeper) ranks.depth_at = at;
  }
  return ranks;
}

// The order in which perf goes through its own table of rows: that of the keys.
std::vector<std::uint32_t> RowOrder::found(std::span<const Column> columns,
                                           std::span<const RowFacts> rows) const {
  struct Step {
    const SortKey* key;
    KeyShow shown;
    std::vector<std::uint64_t> ranks;  // empty: the key finds in an order of its own
  };
  std::vector<Step> steps;
  for (const Column& column : columns) {
    if (column.kind != Column::Kind::Key) continue;
    const SortKey& key = *keys_[column.key].key;
    steps.push_back({&key, show(column.key),
                     key.found == nullptr ? ranks_of(column.key, rows) : std::vector<std::uint64_t>()});
  }
  const auto is_before = [&](std::uint32_t a, std::uint32_t b) {
    for (const Step& step : steps) {
      const auto order = step.ranks.empty() ? step.key->found(step.shown, rows[a], rows[b])
                                            : step.ranks[a] <=> step.ranks[b];
      if (order != 0) return order < 0;
    }
    return false;
  };
  std::vector<std::uint32_t> all(rows.size());
  std::iota(all.begin(), all.end(), 0);
  // Addresses without a name are compared by address, whatever their modules, unless these come first.
  const auto decides = std::ranges::find_if(
      steps, [](const Step& step) { return step.key->found != nullptr || step.key->name == "dso"; });
  const bool is_mixed = decides != steps.end() && decides->key->found != nullptr;
  if (std::ranges::any_of(rows, [&](const RowFacts& row) {
        return row.function->is_inlined || (is_mixed && row.function->name.empty());
      })) {
    return in_tree_order(all, is_before);
  }
  std::ranges::stable_sort(all, is_before);
  return all;
}

std::vector<std::uint32_t> RowOrder::sorted(std::span<const Column> columns, std::span<const Column> found_by,
                                            const WeighedRows& weighed) const {
  const Ranks by = ranks(columns, weighed);
  const auto is_before = [&](std::uint32_t a, std::uint32_t b) {
    const std::uint64_t *const words_a = &by.words[a * by.width], *const words_b = &by.words[b * by.width];
    for (std::size_t i = 0; i < by.width; ++i) {
      if (i == by.depth_at) {
        if (const auto order = weighed.deeper(a, b); order != 0) return order < 0;
      }
      if (words_a[i] != words_b[i]) return words_a[i] < words_b[i];
    }
    return false;
  };
  std::vector<std::uint32_t> order = found(found_by, weighed.rows);
  if (by.depth_at < by.width) return in_tree_order(order, is_before);
  std::ranges::stable_sort(order, is_before);
  return order;
}

}  // namespace tacho::report
