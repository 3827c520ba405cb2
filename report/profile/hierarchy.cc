#include "report/profile/hierarchy.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace tacho::report {

namespace {

using Kind = Column::Kind;

// The numbers that are added up for rows. Any other column equals one of these, or is 0.
constexpr std::array kKept = {Kind::Overhead,         Kind::OverheadSys,       Kind::OverheadUser,
                              Kind::OverheadGuestSys, Kind::OverheadGuestUser, Kind::Samples,
                              Kind::Latency};

// Filters on values that no key of a level shows.
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
  for (const EntryId entry : leaf_of_.ids()) add_entry(entry);
  IdVector<TreeRowId, TreeRowId> above;
  above.reserve(rows_.size());
  for (const Row& row : rows_) above.push_back(row.above);
  below_ = lists_of(above, rows_.size());
  entries_of_ = lists_of(leaf_of_, rows_.size());
  for (const TreeRowId row : rows_.ids()) {
    if (rows_[row].above == kNo<TreeRowId>) top_.push_back(row);
  }
  put_in_order(top_);
}

// Keeps the order of ids; owner kNo: in no list.
template <class Id>
Hierarchy::Lists<Id> Hierarchy::lists_of(const IdVector<Id, TreeRowId>& owners, std::size_t count) {
  Lists<Id> lists;
  lists.first.resize(count + 1);
  for (const TreeRowId owner : owners) {
    if (owner != kNo<TreeRowId>) ++lists.first[index_of(owner) + 1];
  }
  std::partial_sum(lists.first.begin(), lists.first.end(), lists.first.begin());
  std::vector<std::uint32_t> next(lists.first.begin(), lists.first.end());
  lists.ids.resize(lists.first.back());
  for (const Id id : owners.ids()) {
    if (owners[id] != kNo<TreeRowId>) lists.ids[next[index_of(owners[id])]++] = id;
  }
  return lists;
}

void Hierarchy::add_entry(EntryId entry) {
  TreeRowId above = kNo<TreeRowId>;
  for (std::uint32_t level = 0; level < options_.levels.size(); ++level) {
    const TreeRowId row = row_of(entry, above, level);
    // A filter on a value that is no key hides a row if it refuses all entries of the row.
    rows_[row].filtered &= static_cast<FilterBits>(entries_->filtered_by(entry) | ~kOfSamples);
    std::size_t at = index_of(row) * members() * kKept.size();
    for (std::size_t member = 0; member < members(); ++member) {
      for (const Kind kind : kKept) values_[at++] += entries_->value(kind, entry, member);
    }
    above = row;
  }
  leaf_of_[entry] = above;
}

TreeRowId Hierarchy::row_of(EntryId entry, TreeRowId above, std::uint32_t level) {
  const RowFacts facts = entries_->facts(entry);
  words_ = {value_of(above)};
  for (const Column& column : options_.levels[level].columns) {
    if (column.kind != Kind::Key) continue;  // numbers do not distinguish rows
    const KeyUse& use = keys_[column.key];
    words_.push_back(use.key->identity({use, *facts_}, facts));
  }
  const TreeRowId id = identities_.id_of(words_);
  if (rows_.has(id)) return id;
  rows_.push_back({.entry = entry,
                   .above = above,
                   .level = level,
                   .filtered = entries_->filtered_by(entry),
                   .is_leaf = level + 1 == options_.levels.size()});
  values_.resize(values_.size() + members() * kKept.size());
  apply_filters(id);
  return id;
}

// If a row passes on the level that a filter tests, it clears the mark of all rows above. Levels above begin
// with the mark; levels below inherit it.
void Hierarchy::apply_filters(TreeRowId id) {
  Row& row = rows_[id];
  for (const FilterBits filter : {kByThread, kByModule, kBySymbol}) {
    if ((options_.filters & filter) == 0) continue;
    if ((options_.levels[row.level].decides & filter) == 0) {
      row.filtered |=
          row.above == kNo<TreeRowId> ? filter : static_cast<FilterBits>(rows_[row.above].filtered & filter);
    } else if ((row.filtered & filter) == 0) {
      for (TreeRowId above = row.above; above != kNo<TreeRowId>; above = rows_[above].above)
        rows_[above].filtered &= static_cast<FilterBits>(~filter);
    }
  }
  if (options_.is_symbol_shown && !options_.is_symbol_shown(*entries_->facts(row.entry).function))
    row.filtered |= kBySymbol;
}

// The recursion is as deep as there are levels, at most the number of keys in --sort.
void Hierarchy::put_in_order(std::span<const TreeRowId> siblings) {
  if (siblings.empty()) return;
  const SortInput input{.rows = siblings.size(),
                        .facts = [&](std::uint32_t row) { return facts(siblings[row]); },
                        .members = members(),
                        .first_member = entries_->first_member(),
                        .values =
                            [&](Kind kind, std::size_t member, std::span<std::uint64_t> values) {
                              for (std::size_t i = 0; i < siblings.size(); ++i)
                                values[i] = value(kind, siblings[i], member);
                            },
                        .depth = {}};
  for (const std::uint32_t index : sorted_rows(keys_, *facts_, options_.sorted, input)) {
    shown_.push_back(siblings[index]);
    put_in_order(below(siblings[index]));
  }
}

RowFacts Hierarchy::facts(TreeRowId id) const {
  RowFacts facts = entries_->facts(rows_[id].entry);
  facts.samples = 0;
  for (std::size_t member = 0; member < members(); ++member)
    facts.samples += value(Kind::Samples, id, member);
  return facts;
}

std::uint64_t Hierarchy::value(Kind kind, TreeRowId row, std::size_t member) const {
  const std::size_t slot = slot_of(kind);
  return slot == kKept.size() ? 0 : values_[(index_of(row) * members() + member) * kKept.size() + slot];
}

std::uint64_t Hierarchy::total(std::size_t member, bool is_relative, Kind kind) const {
  std::uint64_t total = 0;
  for (const TreeRowId row : top_) {
    if (!is_relative || rows_[row].filtered == 0) total += value(kind, row, member);
  }
  return total;
}

}  // namespace tacho::report
