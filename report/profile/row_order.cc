#include "report/profile/row_order.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "report/output/beside.h"
#include "report/profile/tree_order.h"
#include "report/samples/address_table.h"

namespace tacho::report {

// What one key or column says of each row: rows are compared by these, smaller ones first.
using Values = RowTable<std::uint64_t>;

// Values of several kinds in as few words as hold them, the kind that decides first in the highest bits. Most
// comparisons then are of one word.
class PackedValues {
 public:
  void add(Values values) {
    std::uint64_t most = 0;
    for (const std::uint64_t value : values) most = std::max(most, value);
    const auto bits = static_cast<unsigned>(std::bit_width(most));
    if (words_.empty() || bits > left_ || bits == 64) {  // a shift by 64 is undefined
      words_.push_back(std::move(values));
      left_ = 64 - bits;
      return;
    }
    if (bits == 0) return;
    Values& word = words_.back();
    for (std::size_t row = 0; row < values.size(); ++row) word[row] = word[row] << bits | values[row];
    left_ -= bits;
  }
  std::size_t size() const { return words_.size(); }
  std::uint64_t word(std::size_t index, std::uint32_t row) const {
    return index < words_.size() ? words_[index][row] : 0;
  }
  // By the words from `first` on.
  std::strong_ordering compare(std::size_t first, std::uint32_t a, std::uint32_t b) const {
    for (std::size_t i = first; i < words_.size(); ++i) {
      if (words_[i][a] != words_[i][b]) return words_[i][a] <=> words_[i][b];
    }
    return std::strong_ordering::equal;
  }

 private:
  std::vector<Values> words_;
  unsigned left_ = 0;  // bits of the last word that are free
};

namespace {

// A row on its way through sorting, with the words that mostly decide.
struct Item {
  std::uint64_t first = 0, second = 0;
  std::uint32_t row = 0;
};

using Items = RowTable<Item>;

// By one of their words, a byte of it after the other; equal ones stay as they are. `scratch` is as long.
void sort_by_bytes(Items& items, Items& scratch, std::uint64_t Item::*word) {
  constexpr unsigned kBits = 8;
  constexpr std::size_t kValues = std::size_t{1} << kBits;
  std::uint64_t differs = 0;
  for (const Item& item : items) differs |= item.*word ^ items.front().*word;
  for (unsigned shift = 0; shift < 64; shift += kBits) {
    if ((differs >> shift) % kValues == 0) continue;
    std::array<std::size_t, kValues> next{};
    for (const Item& item : items) ++next[(item.*word >> shift) % kValues];
    std::exclusive_scan(next.begin(), next.end(), next.begin(), std::size_t{0});
    for (const Item& item : items) scratch[next[(item.*word >> shift) % kValues]++] = item;
    items.swap(scratch);
  }
}

// The rows, which stand as they came where nothing decides.
void put_in_order(std::vector<std::uint32_t>& rows, const PackedValues& by) {
  if (rows.empty()) return;
  Items items, scratch(rows.size());
  items.reserve(rows.size());
  for (const std::uint32_t row : rows) items.push_back({by.word(0, row), by.word(1, row), row});
  sort_by_bytes(items, scratch, &Item::second);
  sort_by_bytes(items, scratch, &Item::first);
  for (auto from = items.begin(); by.size() > 2 && from != items.end();) {
    const auto to = std::find_if(from, items.end(), [from](const Item& item) {
      return item.first != from->first || item.second != from->second;
    });
    std::stable_sort(from, to,
                     [&by](const Item& a, const Item& b) { return by.compare(2, a.row, b.row) < 0; });
    from = to;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = items[i].row;
}

// A row where the depth of chains decides between rows of one thread.
struct DeepItem {
  std::uint64_t before = 0, behind = 0;  // the first words of what decides before the depth, and after it
  const Thread* thread = nullptr;
  std::uint32_t depth = 0, row = 0;
};

void put_in_order_of_depths(std::vector<std::uint32_t>& rows, const PackedValues& before,
                            const PackedValues& behind, std::span<const RowDepth> depths) {
  RowTable<DeepItem> items;
  items.reserve(rows.size());
  for (const std::uint32_t row : rows)
    items.push_back({before.word(0, row), behind.word(0, row), depths[row].thread, depths[row].depth, row});
  put_in_tree_order(std::span(items), [&](const DeepItem& a, const DeepItem& b) {
    if (a.before != b.before) return a.before < b.before;
    if (before.size() > 1) {
      if (const auto order = before.compare(1, a.row, b.row); order != 0) return order < 0;
    }
    if (a.thread == b.thread && a.depth != b.depth) return a.depth < b.depth;
    if (a.behind != b.behind) return a.behind < b.behind;
    return behind.size() > 1 && behind.compare(1, a.row, b.row) < 0;
  });
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = items[i].row;
}

// Those of a group whose numbers decide, one after another: all from the first on, or first this one, then
// the others without the first.
std::vector<std::size_t> members_in_order(std::size_t members, std::size_t first) {
  std::vector<std::size_t> order;
  if (first != 0) order.push_back(first);
  for (std::size_t member = first == 0 ? 0 : 1; member < members; ++member) {
    if (first == 0 || member != first) order.push_back(member);
  }
  return order;
}

}  // namespace

// Each value that order() tells from others gets a number, once: rows are compared many times.
Values RowOrder::ranks_of(std::size_t key, const RowsToOrder& rows) const {
  const KeyShow shown = show(key);
  const SortKey& sort_key = *keys_[key].key;
  const auto value_of = sort_key.ordered_by != nullptr ? sort_key.ordered_by : sort_key.identity;
  AddressTable by_value;
  std::vector<std::uint32_t> firsts;  // a row that has it, by the value's number
  const auto number_of = [&](std::uint32_t row) {
    return by_value.find_or_make(0, value_of(shown, rows[row]), [&] {
      firsts.push_back(row);
      return static_cast<std::uint32_t>(firsts.size() - 1);
    });
  };
  Values all;
  all.reserve(rows.size());
  if (rows.groups() > 0 && !is_of_function(keys_[key])) {  // what a group's rows say is asked once
    std::vector<std::uint32_t> known(rows.groups(), IndexTable::kNone);
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      std::uint32_t& number = known[rows.group(row)];
      if (number == IndexTable::kNone) number = number_of(row);
      all.push_back(number);
    }
  } else {
    rows.walk([&](std::uint32_t row) { all.push_back(number_of(row)); });
  }
  std::vector<std::uint32_t> values(firsts.size());
  std::iota(values.begin(), values.end(), 0);
  std::ranges::sort(values, [&](std::uint32_t a, std::uint32_t b) {
    return sort_key.order(shown, rows[firsts[a]], rows[firsts[b]]) < 0;
  });
  std::vector<std::uint64_t> ranks(values.size());
  for (std::size_t i = 1; i < values.size(); ++i) {
    const auto order = sort_key.order(shown, rows[firsts[values[i - 1]]], rows[firsts[values[i]]]);
    ranks[values[i]] = ranks[values[i - 1]] + (order != 0 ? 1 : 0);
  }
  for (std::uint64_t& value : all) value = ranks[value];
  return all;
}

PackedValues RowOrder::packed(std::span<const Column> columns, const WeighedRows& weighed) const {
  PackedValues all;
  for (const Column& column : columns) {
    if (column.kind == Column::Kind::Key) {
      all.add(ranks_of(column.key, weighed.rows));
      continue;
    }
    // With children, only those of the first event decide. Of the rows' own numbers, those of the first event
    // decide nothing where another event leads.
    const bool is_of_first = is_of_children(column.kind);
    for (const std::size_t member :
         members_in_order(is_of_first ? 1 : weighed.members, is_of_first ? 0 : weighed.first_member)) {
      Values values(weighed.rows.size());
      weighed.values(column.kind, member, values);
      const std::uint64_t most = values.empty() ? 0 : std::ranges::max(values);
      for (std::uint64_t& value : values) value = most - value;  // the heaviest first
      all.add(std::move(values));
    }
  }
  return all;
}

// The order in which perf goes through its own table of rows: that of the keys.
std::vector<std::uint32_t> RowOrder::found(std::span<const Column> columns, const RowsToOrder& rows,
                                           std::span<const std::uint32_t> met) const {
  struct Step {
    const SortKey* key;
    KeyShow shown;
    Values ranks;  // empty: the key finds in an order of its own
  };
  std::vector<Step> steps;
  for (const Column& column : columns) {
    if (column.kind != Column::Kind::Key) continue;
    const SortKey& key = *keys_[column.key].key;
    steps.push_back({&key, show(column.key), key.found == nullptr ? ranks_of(column.key, rows) : Values()});
  }
  std::vector<std::uint32_t> all(met.begin(), met.end());
  if (all.empty()) {
    all.resize(rows.size());
    std::iota(all.begin(), all.end(), 0);
  }
  const auto is_before = [&](std::uint32_t a, std::uint32_t b) {
    for (const Step& step : steps) {
      const auto order = step.key->found != nullptr ? step.key->found(step.shown, rows[a], rows[b])
                                                    : step.ranks[a] <=> step.ranks[b];
      if (order != 0) return order < 0;
    }
    return false;
  };
  // Addresses without a name are compared by address, whatever their modules, unless these come first.
  const auto decides = std::ranges::find_if(
      steps, [](const Step& step) { return step.key->found != nullptr || step.key->name == "dso"; });
  const bool is_mixed = decides != steps.end() && decides->key->found != nullptr;
  bool needs_tree = false;
  rows.walk([&](std::uint32_t row) {
    const Function& function = rows.function(row);
    needs_tree = needs_tree || function.is_inlined || (is_mixed && function.name.empty());
  });
  if (needs_tree) {
    put_in_tree_order(std::span(all), is_before);
    return all;
  }
  const bool has_words = std::ranges::all_of(
      steps, [](const Step& step) { return step.key->found == nullptr || step.key->found_words != nullptr; });
  if (is_mixed || !has_words) {
    std::ranges::stable_sort(all, is_before);
    return all;
  }
  PackedValues by;
  for (Step& step : steps) {
    if (step.key->found == nullptr) {
      by.add(std::move(step.ranks));
      continue;
    }
    Values words[std::tuple_size_v<FoundWords>];
    for (Values& values : words) values.reserve(rows.size());
    rows.walk([&](std::uint32_t row) {
      const FoundWords found = step.key->found_words(rows[row]);
      for (std::size_t i = 0; i < found.size(); ++i) words[i].push_back(found[i]);
    });
    for (Values& values : words) by.add(std::move(values));
  }
  put_in_order(all, by);
  return all;
}

std::vector<std::uint32_t> RowOrder::sorted(std::span<const Column> columns, std::span<const Column> found_by,
                                            const WeighedRows& weighed) const {
  const auto is_children = [](const Column& column) { return is_of_children(column.kind); };
  const auto children = std::ranges::find_if(columns, is_children);
  const bool is_deep = !weighed.depths.empty() && children != columns.end();
  const auto with_children = is_deep ? static_cast<std::size_t>(children - columns.begin()) + 1 : 0;
  PackedValues before, behind;
  // Keys of branches and of memory ask for names while they compare, which is for one thread.
  const bool names_more = facts_->options().mode != ReportMode::Samples;
  Beside packing(names_more ? 0 : weighed.rows.size(), [&] {
    if (is_deep) before = packed(columns.first(with_children), weighed);
    behind = packed(columns.subspan(with_children), weighed);
  });
  std::vector<std::uint32_t> order = found(found_by, weighed.rows, weighed.met);
  packing.wait();
  if (is_deep) {
    put_in_order_of_depths(order, before, behind, weighed.depths);
  } else {
    put_in_order(order, behind);
  }
  return order;
}

}  // namespace tacho::report
