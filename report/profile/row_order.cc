#include "report/profile/row_order.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "report/samples/tables.h"

namespace tacho::report {

namespace {

using Values = RowTable<std::uint64_t>;
using Ranks = RowTable<std::uint32_t>;

// Values of several kinds packed into few words, the first kind in the highest bits, so that most comparisons
// are of one word.
class PackedValues {
 public:
  void add(Values values) {
    const std::uint64_t most = values.empty() ? 0 : std::ranges::max(values);
    if (const unsigned bits = bits_of(most); !joins_last(bits)) {
      words_.push_back(std::move(values));
      left_ = 64 - bits;
    } else {
      join(values.size(), bits, [&values](std::size_t row) { return values[row]; });
    }
  }
  void add(const Ranks& ranks) {
    add(ranks.size(), ranks.empty() ? 0 : std::ranges::max(ranks),
        [&ranks](std::size_t row) { return ranks[row]; });
  }
  // Adds a value for each of `count` rows; `most` is the maximum.
  template <class ValueOf>
  void add(std::size_t rows, std::uint64_t most, ValueOf&& value_of) {
    const unsigned bits = bits_of(most);
    if (!joins_last(bits)) {
      words_.emplace_back(rows);
      left_ = 64;
    }
    join(rows, bits, value_of);
  }
  std::strong_ordering compare(std::uint32_t a, std::uint32_t b) const {
    for (const Values& word : words_) {
      if (word[a] != word[b]) return word[a] <=> word[b];
    }
    return std::strong_ordering::equal;
  }

 private:
  static unsigned bits_of(std::uint64_t most) { return static_cast<unsigned>(std::bit_width(most)); }
  // A shift by 64 is undefined.
  bool joins_last(unsigned bits) const { return !words_.empty() && bits <= left_ && bits != 64; }
  template <class ValueOf>
  void join(std::size_t rows, unsigned bits, ValueOf&& value_of) {
    if (bits == 0) return;
    Values& word = words_.back();
    for (std::size_t row = 0; row < rows; ++row)
      word[row] = (bits == 64 ? 0 : word[row] << bits) | value_of(row);
    left_ -= bits;
  }

  std::vector<Values> words_;
  unsigned left_ = 0;  // free bits of the last word
};

// Sorts slices of the rows in parallel, and merges them pairwise.
std::vector<std::uint32_t> order_by(const PackedValues& by, std::size_t count, format::WorkerPool& pool) {
  constexpr std::size_t kWorthASlice = 4096;  // rows
  std::vector<std::uint32_t> rows(count), merged;
  std::iota(rows.begin(), rows.end(), 0);
  const std::size_t slices = std::clamp<std::size_t>(count / kWorthASlice, 1, pool.workers());
  std::size_t size = std::max<std::size_t>((count + slices - 1) / slices, 1);
  const auto is_less = [&by](std::uint32_t a, std::uint32_t b) { return by.compare(a, b) < 0; };
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

}  // namespace

// Gives each distinct value by order() a rank, so that rows are compared fast. Most keys have numbers from 0
// up, for which an array is used.
Ranks RowOrder::ranks_of(std::size_t key, const RowsToOrder& rows) const {
  const KeyShow shown = show(key);
  const SortKey& sort_key = *keys_[key].key;
  const auto value_of = sort_key.ordered_by != nullptr ? sort_key.ordered_by : sort_key.identity;
  const std::uint64_t most_small = 2 * rows.size();
  IdMap<std::uint32_t, std::uint32_t> by_small_value{kNo<std::uint32_t>};
  IndexTable<> by_value;
  RowTable<std::uint32_t> firsts;  // a row with the value, by number
  const auto number_of = [&](std::uint32_t row) {
    const std::uint64_t value = value_of(shown, rows[row]);
    const auto make = [&] {
      firsts.push_back(row);
      return static_cast<std::uint32_t>(firsts.size() - 1);
    };
    if (value >= most_small) {
      return by_value.find_or_make(
          by_value.hash(value),
          [&](std::uint32_t known) { return value_of(shown, rows[firsts[known]]) == value; }, make);
    }
    std::uint32_t& number = by_small_value[static_cast<std::uint32_t>(value)];
    if (number == kNo<std::uint32_t>) number = make();
    return number;
  };
  Ranks all;
  all.reserve(rows.size());
  if (rows.groups() > 0 && !is_of_function(keys_[key])) {  // facts of a group are evaluated once
    IdVector<GroupId, std::uint32_t> known;
    known.resize(rows.groups(), kNo<std::uint32_t>);
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      std::uint32_t& number = known[rows.group(row)];
      if (number == kNo<std::uint32_t>) number = number_of(row);
      all.push_back(number);
    }
  } else {
    for (std::uint32_t row = 0; row < rows.size(); ++row) all.push_back(number_of(row));
  }
  by_small_value.forget();
  by_value.forget();
  std::vector<std::uint32_t> values(firsts.size());
  std::iota(values.begin(), values.end(), 0);
  std::ranges::sort(values, [&](std::uint32_t a, std::uint32_t b) {
    return sort_key.order(shown, rows[firsts[a]], rows[firsts[b]]) < 0;
  });
  std::vector<std::uint32_t> ranks(values.size());
  for (std::size_t i = 1; i < values.size(); ++i) {
    const auto order = sort_key.order(shown, rows[firsts[values[i - 1]]], rows[firsts[values[i]]]);
    ranks[values[i]] = ranks[values[i - 1]] + (order != 0 ? 1 : 0);
  }
  for (std::uint32_t& value : all) value = ranks[value];
  return all;
}

// The values that decide, in order; each is computed by a task.
std::vector<RowOrder::MakeValues> RowOrder::columns_of(std::span<const Column> columns,
                                                       const SortInput& input) const {
  std::vector<MakeValues> made;
  const RowsToOrder& rows = input.rows;
  bool has_function_key = false, knows_depths = input.depth == nullptr;
  for (const Column& column : columns) {
    if (column.kind == Column::Kind::Key) {
      made.emplace_back([this, &rows, key = column.key] { return OfColumn{{}, ranks_of(key, rows)}; });
      has_function_key = has_function_key || is_of_function(keys_[column.key]);
      continue;
    }
    // With children, only the first event's numbers decide. Of the rows' own numbers, the first event's are
    // ignored if another event is first.
    const bool is_of_first = is_of_children(column.kind);
    for (const std::size_t member :
         members_in_order(is_of_first ? 1 : input.members, is_of_first ? 0 : input.first_member)) {
      made.emplace_back([&input, kind = column.kind, member] {
        RowTable<std::uint64_t> values(input.rows.size());
        input.values(kind, member, values);
        const std::uint64_t most = values.empty() ? 0 : std::ranges::max(values);
        for (std::uint64_t& value : values) value = most - value;  // heaviest first
        return OfColumn{std::move(values), {}};
      });
    }
    if (!is_of_first || std::exchange(knows_depths, true)) continue;
    made.emplace_back([&input] {
      Ranks depths(input.rows.size());
      for (std::uint32_t row = 0; row < depths.size(); ++row) depths[row] = input.depth(row);
      return OfColumn{{}, std::move(depths)};
    });
  }
  // The starts of functions, ascending.
  if (!has_function_key) return made;
  made.emplace_back([&rows] {
    RowTable<std::uint64_t> values(rows.size());
    for (std::uint32_t row = 0; row < rows.size(); ++row) values[row] = rows.function(row).start;
    const std::uint64_t least = values.empty() ? 0 : std::ranges::min(values);
    for (std::uint64_t& value : values) value -= least;
    return OfColumn{std::move(values), {}};
  });
  return made;
}

std::vector<std::uint32_t> RowOrder::sorted(std::span<const Column> columns, const SortInput& input) const {
  const std::vector<MakeValues> columns_to_make = columns_of(columns, input);
  std::vector<OfColumn> made(columns_to_make.size());
  format::WorkerPool alone(1);
  format::WorkerPool& pool = input.pool != nullptr ? *input.pool : alone;
  const std::size_t others = input.beside != nullptr ? 1 : 0;
  // The last key is usually the function, which takes longest.
  auto all = pool.run(made.size() + others, [&](std::size_t task, unsigned) -> Result<> {
    const std::size_t column = made.size() + others - 1 - task;
    if (column == made.size()) {
      input.beside();
    } else {
      made[column] = columns_to_make[column]();
    }
    return Done{};
  });
  static_cast<void>(all);  // none returns an error
  PackedValues values;
  for (OfColumn& column : made) {
    if (column.values.empty()) {
      values.add(column.ranks);
    } else {
      values.add(std::move(column.values));
    }
    column = {};
  }
  return order_by(values, input.rows.size(), pool);
}

}  // namespace tacho::report
