#include "report/profile/entries.h"

#include <algorithm>
#include <numeric>

#include "report/output/beside.h"

namespace tacho::report {

// The level of the rows that a chain makes: that of the function, and where nothing was mapped, that of the
// frame before. Asked for frames in their order, and only where a row is made.
class Entries::Levels {
 public:
  Levels(const FunctionTable& functions, std::span<const std::uint32_t> chain, char own)
      : functions_(&functions), chain_(chain), level_(own) {}
  char at(std::size_t position) {
    for (; next_ <= position; ++next_) {
      const Function& function = (*functions_)[chain_[next_]];
      if (function.module != nullptr) level_ = function.level;
    }
    return level_;
  }

 private:
  const FunctionTable* functions_;
  std::span<const std::uint32_t> chain_;
  std::size_t next_ = 0;
  char level_;
};

Entries::Entries(const NamedRows& names, std::uint32_t block, EntryIndex& index, EntryOptions options)
    : names_(&names),
      profile_(&names.profile()),
      index_(&index),
      functions_(&names.functions()),
      stacks_(names.stacks()),
      options_(std::move(options)),
      members_(profile_->blocks()[block].members),
      member_totals_(members_),
      filtered_(members_),
      is_counted_(members_) {
  // With children all functions of chains make rows; without, few of them do. Where there are no chains, all
  // functions are of samples' own places.
  const bool are_rows = options_.has_children || stacks_ == nullptr || stacks_->size() == 0;
  const bool learns_all = are_rows && index_->facts().options().mode == ReportMode::Samples;
  Beside learning(functions_->size(), [this, learns_all] {
    if (learns_all) index_->learn_functions();
  });
  // Memory that is not written to costs nothing; what grows is copied.
  parts_.reserve(profile_->rows_of(block).size());
  weights_.reserve(profile_->rows_of(block).size() * members_);
  add_rows(profile_->rows_of(block));
  learning.wait();
  by_chain_.forget();
  by_alone_.forget();
  by_part_.forget();
  groups_.forget();
  for (std::size_t member = 0; member < members_; ++member)
    is_counted_[member] = member_totals_[member].period == 0;
  group_parts();
  const std::size_t expected = options_.has_children ? functions_->size() / 8 * 9 : parts_.size();
  entries_.reserve(expected);
  totals_.reserve(expected * members_);
  user_.reserve(expected * members_);
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    index_->begin_group();
    add_parts(parts_of(group));
  }
}

// Rows are made a group at a time: what belongs together lies together.
void Entries::group_parts() {
  group_starts_.assign(groups_.size() + std::size_t{1}, 0);
  for (const Part& part : parts_) ++group_starts_[part.group + 1];
  std::partial_sum(group_starts_.begin(), group_starts_.end(), group_starts_.begin());
  std::vector<std::uint32_t> next(group_starts_.begin(), group_starts_.end() - 1);
  by_group_.resize(parts_.size());
  for (std::uint32_t number = 0; number < parts_.size(); ++number)
    by_group_[next[parts_[number].group]++] = number;
}

// Chains that came before lead to their parts, which are fetched a few rows ahead.
void Entries::add_rows(std::span<const std::uint32_t> numbers) {
  constexpr std::size_t kChains = 16, kParts = 6;  // rows ahead
  for (std::size_t at = 0; at < numbers.size(); ++at) {
    if (at + kChains < numbers.size()) by_chain_.prefetch((*names_)[numbers[at + kChains]].chain);
    if (at + kParts < numbers.size()) {
      const std::uint32_t part = by_chain_.find((*names_)[numbers[at + kParts]].chain);
      if (part != kNone) __builtin_prefetch(&parts_[part]);
    }
    add_row(numbers[at]);
  }
}

void Entries::add_row(std::uint32_t number) {
  const ProfileRow& row = profile_->rows()[number];
  const NamedRows::Row& named = (*names_)[number];
  Part part{.row = number, .function = named.function};
  if (options_.hides_unknown && (*functions_)[part.function].name().empty()) return;
  if (options_.is_left_out && options_.is_left_out(row)) return;
  std::span<const Weight> weights = profile_->weights(row);
  std::vector<Weight> others;
  if (options_.weighed_by) {
    for (const Weight& weight : weights) others.push_back(options_.weighed_by(row, weight));
    weights = others;
  }
  part.chain = named.chain;
  std::uint32_t parent = kNone;
  if (part.chain != kNone && (options_.is_parent || options_.is_root)) {
    const auto chain = stacks_->frames(part.chain);
    if (options_.is_parent) {
      const auto found = std::ranges::find_if(
          chain, [&](std::uint32_t id) { return options_.is_parent((*functions_)[id]); });
      if (found != chain.end()) parent = *found;
    }
    const std::size_t begin = chain.size() - chain_of(part).size();
    if (options_.is_root && begin < chain.size() && options_.is_root((*functions_)[chain[begin]]))
      part.function = chain[begin];
  }
  if (options_.filtered_by) part.filtered = options_.filtered_by(row, (*functions_)[part.function]);
  if (options_.shows_only_with_parent && parent == kNone) part.filtered |= kByParent;
  const bool is_filtered = part.filtered != 0;
  for (std::size_t member = 0; member < members_; ++member) {
    for (std::vector<Weight>* totals : {&member_totals_, is_filtered ? &filtered_ : nullptr}) {
      if (totals == nullptr) continue;
      (*totals)[member].period += weights[member].period;
      (*totals)[member].samples += weights[member].samples;
    }
  }
  if (is_filtered && !options_.keeps_filtered) return;

  RowFacts facts{row.thread, row.comm(), profile_->facts(row), &(*functions_)[part.function]};
  if (parent != kNone) facts.parent = &(*functions_)[parent];
  part.group = group_of(facts);
  part.is_kernel = options_.level_of ? options_.level_of(facts.facts) == 'k' : named.is_kernel;
  const std::uint32_t found = part_of(part, parent);
  for (std::size_t member = 0; member < members_; ++member) {
    Weight& weight = weights_[found * members_ + member];
    weight.period += weights[member].period;
    weight.samples += weights[member].samples;
  }
}

// The number of the part that is the same as `part`, made where there is none.
std::uint32_t Entries::part_of(const Part& part, std::uint32_t parent) {
  const auto is_same = [&](std::uint32_t known) {
    return parts_[known].group == part.group && parts_[known].function == part.function &&
           parts_[known].chain == part.chain && parts_[known].is_kernel == part.is_kernel;
  };
  const auto make = [&] {
    parts_.push_back(part);
    weights_.resize(weights_.size() + members_);
    if (options_.is_parent) parents_.push_back(parent);
    return static_cast<std::uint32_t>(parts_.size() - 1);
  };
  std::uint32_t& first = part.chain != kNone ? by_chain_[part.chain] : by_alone_[part.function];
  if (first == kNone) return first = make();
  if (is_same(first)) return first;
  const std::uint64_t hash = by_part_.hash(part.group, part.function, part.chain, part.is_kernel ? 1 : 0);
  return by_part_.find_or_make(hash, is_same, make);
}

// From the last function on that forgets what called it or what it called.
std::span<const std::uint32_t> Entries::chain_of(const Part& part) const {
  if (part.chain == kNone) return {};
  const auto chain = stacks_->frames(part.chain);
  if (!options_.is_root) return chain;
  for (std::size_t at = chain.size(); at-- > 0;) {
    if (options_.is_root((*functions_)[chain[at]])) return chain.subspan(at);
  }
  return chain;
}

std::uint32_t Entries::group_of(const RowFacts& facts) {
  auto& words = groups_.begin();
  const auto keys = index_->keys();
  for (std::size_t key = 0; key < keys.size(); ++key) {
    if (!is_of_function(keys[key])) words.push_back(keys[key].key->identity(index_->show(key), facts));
  }
  return groups_.number();
}

std::uint32_t Entries::make_entry(std::uint32_t part, std::uint32_t function, char level, bool is_own) {
  const FilterBits filtered = parts_[part].filtered;
  entries_.push_back(
      {.part = part, .function = function, .level = level, .filtered = filtered, .is_own = is_own});
  totals_.resize(totals_.size() + members_);
  user_.resize(user_.size() + members_);
  return static_cast<std::uint32_t>(entries_.size() - 1);
}

// Chains lead to rows all over memory, which are fetched a few parts ahead.
void Entries::add_parts(std::span<const std::uint32_t> numbers) {
  constexpr std::size_t kChains = 8, kRows = 3;  // parts ahead
  const bool looks_ahead = options_.has_children && !options_.is_root;
  for (std::size_t at = 0; at < numbers.size(); ++at) {
    if (looks_ahead && at + kChains < numbers.size()) fetch_chain(numbers[at + kChains]);
    if (looks_ahead && at + kRows < numbers.size()) fetch_rows(numbers[at + kRows]);
    add_part(numbers[at]);
  }
}

void Entries::fetch_chain(std::uint32_t number) const {
  index_->prefetch(parts_[number].function);
  for (const std::uint32_t function : chain_of(parts_[number])) index_->prefetch(function);
}

void Entries::fetch_rows(std::uint32_t number) const {
  for (const std::uint32_t function : chain_of(parts_[number])) {
    const std::uint32_t entry = index_->known(function);
    if (entry == EntryIndex::kNone) {
      index_->prefetch_code(function);
      continue;
    }
    __builtin_prefetch(&entries_[entry], 1);
    __builtin_prefetch(&totals_[entry * members_], 1);
  }
}

void Entries::add_part(std::uint32_t number) {
  const Part& part = parts_[number];
  const auto chain = chain_of(part);
  const char own_level = (*functions_)[part.function].level;
  const std::uint32_t own =
      index_->find_or_make(part.function, [&] { return make_entry(number, part.function, own_level, true); });
  add_own(number, own);
  count(number, own, options_.borrows_chains ? 0 : chain.size());
  if (!options_.has_children) return;
  Levels levels(*functions_, chain, own_level);
  for (std::size_t at = 0; at < chain.size(); ++at) {
    const std::uint32_t entry =
        index_->find_or_make(chain[at], [&] { return make_entry(number, chain[at], levels.at(at), false); });
    if (entries_[entry].last_part != number) count(number, entry, chain.size() - at);
  }
}

void Entries::add_own(std::uint32_t number, std::uint32_t entry) {
  for (std::size_t member = 0; member < members_; ++member) {
    const Weight& weight = weight_of(number, member);
    Weight& self = totals_[entry * members_ + member].self;
    self.period += weight.period;
    self.samples += weight.samples;
    if (!parts_[number].is_kernel) user_[entry * members_ + member] += period(weight, member);
  }
}

// `depth`: frames of the part of the chain that is the row's.
void Entries::count(std::uint32_t number, std::uint32_t entry, std::size_t depth) {
  Entry& row = entries_[entry];
  row.last_part = number;
  if (depth > 0) ++row.strands;
  // Rows that only other events of a group have are of no depth to perf.
  if (weight_of(number, 0).samples != 0)
    row.max_depth = std::max(row.max_depth, static_cast<std::uint32_t>(depth));
  for (std::size_t member = 0; member < members_; ++member) {
    Weight& children = totals_[entry * members_ + member].children;
    children.period += weight_of(number, member).period;
    children.samples += weight_of(number, member).samples;
  }
}

// Relative to the module for a sample's own place, as it was sampled for the others.
std::uint64_t Entries::address_of(const Entry& entry) const {
  const Function& function = (*functions_)[entry.function];
  if (!index_->facts().options().is_verbose && !function.is_data) return 0;
  if (!entry.is_own) return function.first_ip;
  const Location& place = index_->facts().session().resolver().location(row_of(entry).location);
  if (place.mapping == nullptr) return place.ip.value;
  // Of BPF programs too, which frames are shown by their runtime addresses.
  if (place.mapping->module->kind == symbolize::ModuleKind::Bpf) return place.ip.value - place.mapping->start;
  return place.mapping->shown_address(place.ip);
}

void Entries::fetch_entry(std::uint32_t entry) const {
  __builtin_prefetch(&entries_[entry]);
  __builtin_prefetch(&totals_[entry * members_]);
}

void Entries::fetch_function(std::uint32_t entry) const {
  const auto* const function = reinterpret_cast<const char*>(&(*functions_)[entries_[entry].function]);
  constexpr std::size_t kLine = 64;  // bytes
  for (std::size_t at = 0; at < sizeof(Function); at += kLine) __builtin_prefetch(function + at);
  __builtin_prefetch(&parts_[entries_[entry].part]);
}

void Entries::fetch_names(std::uint32_t entry) const {
  __builtin_prefetch((*functions_)[entries_[entry].function].name().data());
  __builtin_prefetch(&row_of(entries_[entry]));
}

RowFacts Entries::facts(std::uint32_t entry) const {
  const Entry& made = entries_[entry];
  const ProfileRow& row = row_of(made);
  std::uint64_t samples = 0;
  for (std::size_t member = 0; member < members_; ++member) samples += totals(entry, member).self.samples;
  return {.thread = row.thread,
          .comm = row.comm(),
          .facts = profile_->facts(row),
          .function = &(*functions_)[made.function],
          .level = options_.level_of ? options_.level_of(profile_->facts(row)) : made.level,
          .address = address_of(made),
          .parent = parent_of(made.part),
          .samples = samples};
}

std::uint64_t Entries::value(Column::Kind kind, std::uint32_t entry, std::size_t member) const {
  const Totals& of = totals(entry, member);
  switch (kind) {
    case Column::Kind::Children:
      return options_.has_children ? period(of.children, member) : 0;
    case Column::Kind::Overhead:
    case Column::Kind::Period:
      return period(of.self, member);
    case Column::Kind::OverheadSys:
      return period(of.self, member) - user_[entry * members_ + member];
    case Column::Kind::OverheadUser:
      return user_[entry * members_ + member];
    case Column::Kind::Samples:
      return of.self.samples;
    case Column::Kind::Latency:
      return latency() == nullptr ? 0 : latency()->value(Column::Kind::Overhead, entry, member);
    case Column::Kind::LatencyChildren:
      return latency() == nullptr ? 0 : latency()->value(Column::Kind::Children, entry, member);
    case Column::Kind::OverheadGuestSys:
    case Column::Kind::OverheadGuestUser:
    case Column::Kind::Key:
      return 0;  // another machine's samples are left out
  }
  return 0;
}

// A function stands above what it calls: longer chains lead on from the outermost place, shorter ones from
// the innermost.
std::function<RowDepth(std::uint32_t)> Entries::depth() const {
  if (!options_.graph) return nullptr;
  return [this, is_from_caller = *options_.graph == ChainOrder::Caller](std::uint32_t entry) {
    const std::uint32_t depth = entries_[entry].max_depth;
    return RowDepth{row_of(entries_[entry]).thread, is_from_caller ? ~depth : depth};
  };
}

// A group's rows are the same to all keys that do not look at the function, but to those that tell more apart
// for their order.
Entries::ToOrder Entries::to_order(std::span<const Column> columns) const {
  const bool tells_groups =
      index_->facts().options().mode == ReportMode::Samples &&
      std::ranges::all_of(columns, [this](const Column& column) {
        if (column.kind != Column::Kind::Key) return true;
        const KeyUse& use = index_->keys()[column.key];
        return is_of_function(use) || (use.key->found == nullptr && use.key->ordered_by == nullptr);
      });
  ToOrder order;
  if (!tells_groups) {
    order.facts.reserve(entries_.size());
    walk([&](std::uint32_t entry) { order.facts.push_back(facts(entry)); });
    return order;
  }
  order.groups.reserve(groups_.size());
  for (std::uint32_t group = 0; group < groups_.size(); ++group)
    order.groups.push_back(parts_of(group).front());
  order.cells.reserve(entries_.size());
  for (const Entry& entry : entries_) order.cells.push_back({entry.function, parts_[entry.part].group});
  return order;
}

RowsToOrder Entries::rows_of(const ToOrder& order) const {
  if (order.groups.empty()) return RowsToOrder(order.facts);
  const auto of_group = [this, &order](std::uint32_t group) {
    const std::uint32_t part = order.groups[group];
    const ProfileRow& row = profile_->rows()[parts_[part].row];
    return RowFacts{
        .thread = row.thread, .comm = row.comm(), .facts = profile_->facts(row), .parent = parent_of(part)};
  };
  return RowsToOrder(order.cells, order.groups.size(), of_group, functions_->functions());
}

std::vector<std::uint32_t> Entries::found(std::span<const Column> columns) const {
  const ToOrder order = to_order(columns);
  return RowOrder(index_->keys(), index_->facts()).found(columns, rows_of(order), as_met());
}

std::vector<std::uint32_t> Entries::sorted(std::span<const Column> columns) const {
  const ToOrder order = to_order(columns);
  const std::vector<std::uint32_t> met = as_met();
  return RowOrder(index_->keys(), index_->facts())
      .sorted(columns, columns,
              {.rows = rows_of(order),
               .members = members_,
               .first_member = first_member(),
               .values =
                   [this](Column::Kind kind, std::size_t member, std::span<std::uint64_t> values) {
                     for (std::uint32_t entry = 0; entry < values.size(); ++entry)
                       values[entry] = value(kind, entry, member);
                   },
               .depth = depth(),
               .met = met});
}

// The order in which perf meets them, whatever their groups: the next part makes the next rows.
std::vector<std::uint32_t> Entries::as_met() const {
  std::vector<std::uint32_t> starts(parts_.size() + 1), met(entries_.size());
  for (const Entry& entry : entries_) ++starts[entry.part + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  for (std::uint32_t entry = 0; entry < entries_.size(); ++entry) met[starts[entries_[entry].part]++] = entry;
  return met;
}

std::vector<std::vector<Strand>> Entries::strands(std::span<const std::uint32_t> entries) const {
  std::vector<std::vector<Strand>> lists(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) lists[i].reserve(entries_[entries[i]].strands);
  const auto group_of = [&](std::uint32_t i) { return parts_[entries_[entries[i]].part].group; };
  std::vector<std::uint32_t> by_group(entries.size()), last_part(entries.size(), kNone);
  std::iota(by_group.begin(), by_group.end(), 0);
  std::ranges::sort(by_group, {}, group_of);
  for (std::size_t at = 0; at < by_group.size();) {
    const std::uint32_t group = group_of(by_group[at]);
    index_->begin_group();
    for (; at < by_group.size() && group_of(by_group[at]) == group; ++at) {
      const std::uint32_t list = by_group[at];
      index_->find_or_make(entries_[entries[list]].function, [list] { return list; });
    }
    add_strands(group, lists, last_part);
  }
  return lists;
}

// To the rows that the index has; its others are kNone.
void Entries::add_strands(std::uint32_t group, std::vector<std::vector<Strand>>& lists,
                          std::vector<std::uint32_t>& last_part) const {
  for (const std::uint32_t number : parts_of(group)) {
    const Part& part = parts_[number];
    const Weight& weight = weight_of(number, 0);
    const auto chain = chain_of(part);
    if (weight.samples == 0 || chain.empty()) continue;
    const auto meet = [&](std::uint32_t function, std::size_t position, bool has_graph) {
      const std::uint32_t list = index_->find_or_make(function, [] { return kNone; });
      if (list == kNone || last_part[list] == number) return;
      last_part[list] = number;
      if (has_graph) lists[list].push_back({chain.subspan(position), period(weight, 0), weight.samples});
    };
    meet(part.function, 0, !options_.borrows_chains);
    for (std::size_t at = 0; options_.has_children && at < chain.size(); ++at) meet(chain[at], at, true);
  }
}

}  // namespace tacho::report
