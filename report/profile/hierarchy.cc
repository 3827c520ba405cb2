#include "report/profile/hierarchy.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace tacho::report {
namespace {

using Kind = Column::Kind;

// The numbers that are added up for rows. Any other column is one of these or 0.
constexpr std::array kKept = {Kind::Overhead,         Kind::OverheadSys,       Kind::OverheadUser,
                              Kind::OverheadGuestSys, Kind::OverheadGuestUser, Kind::Samples,
                              Kind::Latency};

// Filters that look at what no key of a level shows.
constexpr FilterBits kOfSamples = kByParent | kBySocket | kByParallelism;

std::size_t slot_of(Kind kind) {
  const auto found = std::ranges::find(kKept, kind == Kind::Period ? Kind::Overhead : kind);
  return static_cast<std::size_t>(found - kKept.begin());
}

}  // namespace

Hierarchy::Hierarchy(const Entries& entries, std::span<const KeyUse> keys, const SampleFacts& facts,
                     HierarchyOptions options)
    : entries_(&entries), keys_(keys), facts_(&facts), options_(std::move(options)) {
  leaf_of_.resize(entries.size());
  for (std::uint32_t entry = 0; entry < entries.size(); ++entry) add(entry);
  std::vector<std::uint32_t> above;
  above.reserve(rows_.size());
  for (const Row& row : rows_) above.push_back(row.above);
  below_ = lists_of(above, rows_.size());
  entries_of_ = lists_of(leaf_of_, rows_.size());
  for (std::uint32_t number = 0; number < rows_.size(); ++number) {
    if (rows_[number].above == kNone) top_.push_back(number);
  }
  put_in_order(top_);
}

// Numbers stay in their order; owner kNone: in no list.
Hierarchy::Lists Hierarchy::lists_of(std::span<const std::uint32_t> owners, std::size_t count) {
  Lists lists;
  lists.first.resize(count + 1);
  for (const std::uint32_t owner : owners) {
    if (owner != kNone) ++lists.first[owner + 1];
  }
  std::partial_sum(lists.first.begin(), lists.first.end(), lists.first.begin());
  std::vector<std::uint32_t> next(lists.first.begin(), lists.first.end());
  lists.numbers.resize(lists.first.back());
  for (std::uint32_t number = 0; number < owners.size(); ++number) {
    if (owners[number] != kNone) lists.numbers[next[owners[number]]++] = number;
  }
  return lists;
}

void Hierarchy::add(std::uint32_t entry) {
  std::uint32_t above = kNone;
  for (std::uint32_t level = 0; level < options_.levels.size(); ++level) {
    const std::uint32_t number = row_of(entry, above, level);
    // A filter by something that is no key hides a row if it refuses all entries of the row.
    rows_[number].filtered &= static_cast<FilterBits>(entries_->filtered_by(entry) | ~kOfSamples);
    std::size_t at = number * members() * kKept.size();
    for (std::size_t member = 0; member < members(); ++member) {
      for (const Kind kind : kKept) values_[at++] += entries_->value(kind, entry, member);
    }
    above = number;
  }
  leaf_of_[entry] = above;
}

std::uint32_t Hierarchy::row_of(std::uint32_t entry, std::uint32_t above, std::uint32_t level) {
  const RowFacts facts = entries_->facts(entry);
  scratch_.clear();
  std::uint64_t hash = by_keys_.hash(above, level);
  for (const Column& column : options_.levels[level].columns) {
    if (column.kind != Kind::Key) continue;  // numbers distinguish no rows
    const KeyUse& use = keys_[column.key];
    scratch_.push_back(use.key->identity({use, *facts_}, facts));
    hash = by_keys_.hash.add(hash, scratch_.back());
  }
  return by_keys_.find_or_make(
      hash,
      [&](std::uint32_t known) {
        return rows_[known].above == above && rows_[known].level == level &&
               std::ranges::equal(std::span(words_).subspan(words_at_[known], scratch_.size()), scratch_);
      },
      [&] {
        const auto number = static_cast<std::uint32_t>(rows_.size());
        rows_.push_back({.entry = entry,
                         .above = above,
                         .level = level,
                         .filtered = entries_->filtered_by(entry),
                         .is_leaf = level + 1 == options_.levels.size()});
        words_at_.push_back(static_cast<std::uint32_t>(words_.size()));
        words_.insert(words_.end(), scratch_.begin(), scratch_.end());
        values_.resize(values_.size() + members() * kKept.size());
        apply_filters(number);
        return number;
      });
}

// A row of the level that a filter looks at clears the mark of all rows above when it passes. The levels
// above have the mark at first, those below take it from the row above.
void Hierarchy::apply_filters(std::uint32_t number) {
  Row& row = rows_[number];
  for (const FilterBits filter : {kByThread, kByModule, kBySymbol}) {
    if ((options_.filters & filter) == 0) continue;
    if ((options_.levels[row.level].decides & filter) == 0) {
      row.filtered |=
          row.above == kNone ? filter : static_cast<FilterBits>(rows_[row.above].filtered & filter);
    } else if ((row.filtered & filter) == 0) {
      for (std::uint32_t above = row.above; above != kNone; above = rows_[above].above)
        rows_[above].filtered &= static_cast<FilterBits>(~filter);
    }
  }
  if (options_.is_symbol_shown && !options_.is_symbol_shown(*entries_->facts(row.entry).function))
    row.filtered |= kBySymbol;
}

// No deeper than there are levels, and of these there are as many as --sort has keys.
void Hierarchy::put_in_order(std::span<const std::uint32_t> siblings) {
  if (siblings.empty()) return;
  std::vector<RowFacts> facts;
  facts.reserve(siblings.size());
  for (const std::uint32_t number : siblings) facts.push_back(this->facts(number));
  const WeighedRows weighed{.rows = RowsToOrder(facts),
                            .members = members(),
                            .first_member = entries_->first_member(),
                            .values =
                                [&](Kind kind, std::size_t member, std::span<std::uint64_t> values) {
                                  for (std::size_t i = 0; i < siblings.size(); ++i)
                                    values[i] = value(kind, siblings[i], member);
                                },
                            .depth = {}};
  for (const std::uint32_t index : RowOrder(keys_, *facts_).sorted(options_.sorted, weighed)) {
    shown_.push_back(siblings[index]);
    put_in_order(below(siblings[index]));
  }
}

RowFacts Hierarchy::facts(std::uint32_t number) const {
  RowFacts facts = entries_->facts(rows_[number].entry);
  facts.samples = 0;
  for (std::size_t member = 0; member < members(); ++member)
    facts.samples += value(Kind::Samples, number, member);
  return facts;
}

std::uint64_t Hierarchy::value(Kind kind, std::uint32_t number, std::size_t member) const {
  const std::size_t slot = slot_of(kind);
  return slot == kKept.size() ? 0 : values_[(number * members() + member) * kKept.size() + slot];
}

std::uint64_t Hierarchy::total(std::size_t member, bool is_relative, Kind kind) const {
  std::uint64_t total = 0;
  for (const std::uint32_t number : top_) {
    if (!is_relative || rows_[number].filtered == 0) total += value(kind, number, member);
  }
  return total;
}

std::span<const std::uint32_t> Hierarchy::below(std::uint32_t number) const { return below_.of(number); }

std::span<const std::uint32_t> Hierarchy::entries_of(std::uint32_t number) const {
  return entries_of_.of(number);
}

}  // namespace tacho::report
