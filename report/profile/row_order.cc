#include "report/profile/row_order.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "report/samples/tables.h"

namespace tacho::report {

namespace {

// The values of a column by which rows are sorted, ascending.
using Values = RowTable<std::uint64_t>;

// Sorts slices of the rows in parallel, and merges them pairwise.
std::vector<std::uint32_t> order_by(std::span<const Values> columns, std::size_t count,
                                    format::WorkerPool& pool) {
  constexpr std::size_t kWorthASlice = 4096;  // rows
  std::vector<std::uint32_t> rows(count), merged;
  std::iota(rows.begin(), rows.end(), 0);
  const std::size_t slices = std::clamp<std::size_t>(count / kWorthASlice, 1, pool.workers());
  std::size_t size = std::max<std::size_t>((count + slices - 1) / slices, 1);
  const auto is_less = [columns](std::uint32_t a, std::uint32_t b) {
    for (const Values& values : columns)
      if (values[a] != values[b]) return values[a] < values[b];
    return false;
  };
  for_slices(pool, count, size, [&](std::size_t begin, std::size_t end) {
    std::ranges::stable_sort(std::span(rows).subspan(begin, end - begin), is_less);
  });
  for (; size < count; size *= 2) {
    merged.resize(count);
    for_slices(pool, count, 2 * size, [&](std::size_t begin, std::size_t end) {
      const auto at = [&rows](std::size_t row) { return rows.begin() + static_cast<std::ptrdiff_t>(row); };
      const std::size_t middle = std::min(begin + size, end);
      std::merge(at(begin), at(middle), at(middle), at(end),
                 merged.begin() + static_cast<std::ptrdiff_t>(begin), is_less);
    });
    rows.swap(merged);
  }
  return rows;
}

// The members of a group in the order in which their numbers decide: all from the first on; or `first`, then
// the others.
std::vector<std::size_t> members_in_order(std::size_t members, std::size_t first) {
  std::vector<std::size_t> order;
  if (first != 0) order.push_back(first);
  for (std::size_t member = first == 0 ? 0 : 1; member < members; ++member) {
    if (first == 0 || member != first) order.push_back(member);
  }
  return order;
}

// Gives each distinct value by order() a rank, so that rows are compared fast.
Values ranks_of(const KeyShow& show, const SortInput& input) {
  const SortKey& key = *show.use.key;
  const auto value_of = key.ordered_by != nullptr ? key.ordered_by : key.identity;
  struct Distinct {
    std::uint64_t value = 0;
    std::uint32_t row = 0;  // the first with this value
  };
  std::vector<Distinct> distinct;
  IndexTable<> by_value;
  Values all(input.rows);
  for (std::uint32_t row = 0; row < input.rows; ++row) {
    const std::uint64_t value = value_of(show, input.facts(row));
    all[row] = by_value.find_or_make(
        by_value.hash(value), [&](std::uint32_t known) { return distinct[known].value == value; },
        [&] {
          distinct.push_back({value, row});
          return static_cast<std::uint32_t>(distinct.size() - 1);
        });
  }
  by_value.forget();
  std::vector<std::uint32_t> sorted(distinct.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  const auto order_of = [&](std::uint32_t a, std::uint32_t b) {
    return key.order(show, input.facts(distinct[a].row), input.facts(distinct[b].row));
  };
  std::ranges::sort(sorted, [&](std::uint32_t a, std::uint32_t b) { return order_of(a, b) < 0; });
  std::vector<std::uint32_t> ranks(sorted.size());
  for (std::size_t i = 1; i < sorted.size(); ++i)
    ranks[sorted[i]] = ranks[sorted[i - 1]] + (order_of(sorted[i - 1], sorted[i]) != 0 ? 1 : 0);
  for (std::uint64_t& value : all) value = ranks[value];
  return all;
}

// The columns that decide, in order; each is computed by a task.
std::vector<std::function<Values()>> columns_of(std::span<const KeyUse> keys, const SampleFacts& facts,
                                                std::span<const Column> columns, const SortInput& input) {
  std::vector<std::function<Values()>> made;
  bool has_function_key = false, knows_depths = input.depth == nullptr;
  for (const Column& column : columns) {
    if (column.kind == Column::Kind::Key) {
      const KeyUse& use = keys[column.key];
      made.emplace_back([&use, &facts, &input] { return ranks_of({use, facts}, input); });
      has_function_key = has_function_key || is_of_function(use);
      continue;
    }
    // With children, only the first event's numbers decide. Of the rows' own numbers, the first event's are
    // ignored if another event is first.
    const bool is_of_first = is_of_children(column.kind);
    for (const std::size_t member :
         members_in_order(is_of_first ? 1 : input.members, is_of_first ? 0 : input.first_member)) {
      made.emplace_back([&input, kind = column.kind, member] {
        Values values(input.rows);
        input.values(kind, member, values);
        for (std::uint64_t& value : values) value = ~value;  // heaviest first
        return values;
      });
    }
    if (!is_of_first || std::exchange(knows_depths, true)) continue;
    made.emplace_back([&input] {
      Values depths(input.rows);
      for (std::uint32_t row = 0; row < depths.size(); ++row) depths[row] = input.depth(row);
      return depths;
    });
  }
  // The starts of functions, ascending.
  if (!has_function_key) return made;
  made.emplace_back([&input] {
    Values values(input.rows);
    for (std::uint32_t row = 0; row < input.rows; ++row) values[row] = input.facts(row).function->start;
    return values;
  });
  return made;
}

}  // namespace

std::vector<std::uint32_t> sorted_rows(std::span<const KeyUse> keys, const SampleFacts& facts,
                                       std::span<const Column> columns, const SortInput& input) {
  const auto columns_to_make = columns_of(keys, facts, columns, input);
  std::vector<Values> made(columns_to_make.size());
  format::WorkerPool alone(1);
  format::WorkerPool& pool = input.pool != nullptr ? *input.pool : alone;
  const std::size_t others = input.beside != nullptr ? 1 : 0;
  // The last key is usually the function, which takes longest.
  auto all = pool.run_tasks(made.size() + others, [&](std::size_t task, unsigned) -> Result<> {
    const std::size_t column = made.size() + others - 1 - task;
    if (column == made.size()) {
      input.beside();
    } else {
      made[column] = columns_to_make[column]();
    }
    return Done{};
  });
  static_cast<void>(all);  // none returns an error
  return order_by(made, input.rows, pool);
}

}  // namespace tacho::report
