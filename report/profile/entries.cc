#include "report/profile/entries.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tacho::report {

namespace {

CpuMode mode_of_level(char level) {
  return level == 'k'   ? CpuMode::Kernel
         : level == 'g' ? CpuMode::GuestKernel
         : level == 'u' ? CpuMode::GuestUser
                        : CpuMode::User;
}

}  // namespace

// The level of the rows that a chain makes: of the function, or, where nothing is mapped, of the frame
// before. Call it for the frames in order, and only where a row is made.
class Entries::Levels {
 public:
  Levels(const FunctionTable& functions, std::span<const FunctionId> chain, char own)
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
  std::span<const FunctionId> chain_;
  std::size_t next_ = 0;
  char level_;
};

Entries::Entries(const NamedRows& names, BlockId block, EntryIndex& index, EntryOptions options)
    : names_(&names),
      profile_(&names.profile()),
      index_(&index),
      functions_(&names.functions()),
      stacks_(options.late.stacks != nullptr ? options.late.stacks : names.stacks()),
      options_(std::move(options)),
      members_(profile_->blocks()[block].members),
      current_(members_),
      member_totals_(members_),
      filtered_(members_) {
  // With children, all functions of chains make rows; without, few of them do. If there are no chains, all
  // functions belong to samples' own addresses.
  const bool are_rows = options_.has_children || names.stacks() == nullptr || names.stacks()->size() == 0;
  const bool learns_all = are_rows && index_->facts().options().mode == ReportMode::Samples;
  const std::span<const RowId> rows = profile_->rows_of(block);
  format::WorkerPool alone(1);
  auto learning =
      (options_.pool != nullptr ? *options_.pool : alone).fork(learns_all ? 1 : 0, [this](auto, auto) {
        index_->learn_functions();
        return Result<>(Done{});
      });
  parts_.reserve(rows.size());
  std::optional<Groups> groups{std::in_place};
  for (const RowId row : rows) add_row(row, *groups);
  static_cast<void>(learning.join());  // it returns no error
  group_parts(groups->size());
  groups.reset();
  // Reserved memory that is not written to costs nothing; growing copies.
  const std::size_t most = options_.has_children ? functions_->size() / 8 * 9 : parts_.size();
  entries_.reserve(most);
  cells_.reserve(most);
  of_chains_.reserve(most);
  selves_.reserve(most * members_);
  if (options_.has_children) children_.reserve(most * members_);
  const bool names_late = options_.late.stacks != nullptr;
  IdVector<PartId, EntryId> own_entries;
  if (names_late) own_entries.resize(parts_.size());
  for (const GroupId group : Ids<GroupId>{group_starts_.size() - 1}) {
    index_->begin_group();
    for (const PartId part : parts_of(group)) {
      const EntryId own = add_part(part);
      if (names_late) own_entries[part] = own;
    }
  }
  if (names_late) name_heavy(own_entries);
}

// Rows are made group by group: members of a group are next to each other.
void Entries::group_parts(std::size_t groups) {
  group_starts_.assign(groups + 1, 0);
  for (const Part& part : parts_) ++group_starts_[index_of(part.group) + 1];
  std::partial_sum(group_starts_.begin(), group_starts_.end(), group_starts_.begin());
  std::vector<std::uint32_t> next(group_starts_.begin(), group_starts_.end() - 1);
  by_group_.resize(parts_.size());
  for (const PartId part : parts_.ids()) by_group_[next[index_of(parts_[part].group)]++] = part;
}

// Which entries may have a graph is known after all are counted.
void Entries::name_heavy(const IdVector<PartId, EntryId>& own_entries) {
  const std::uint64_t total = whole(0, options_.late.is_relative);
  const std::uint64_t least =
      CallTreeLimit{CallTreeLimit::Share::OfTotal, options_.late.least_percent, total}.least(0);
  for (const PartId part : parts_.ids()) {
    const EntryId own = own_entries[part];
    const Stack* const stack = profile_->stack_of(parts_[part].row);
    if (stack == nullptr || value(Column::Kind::Overhead, own, 0) < least) continue;
    parts_[part].chain = options_.late.stacks->chain_of(*stack);
    if (!chain_of(parts_[part]).empty()) ++of_chains_[own].strands;
  }
}

void Entries::add_row(RowId id, Groups& groups) {
  const ProfileRow& row = profile_->rows()[id];
  const NamedRows::Row& named = (*names_)[id];
  Part part{.row = id, .function = named.function};
  if (options_.hides_unknown && !(*functions_)[part.function].has_symbol()) return;
  if (options_.is_left_out && options_.is_left_out(row)) return;
  part.chain = named.chain;
  FunctionId parent = kNo<FunctionId>;
  if (part.chain != kNo<ChainId> && (options_.is_parent || options_.is_root)) {
    const auto chain = stacks_->frames(part.chain);
    if (options_.is_parent) {
      const auto found =
          std::ranges::find_if(chain, [&](FunctionId id) { return options_.is_parent((*functions_)[id]); });
      if (found != chain.end()) parent = *found;
    }
    const std::size_t begin = chain.size() - chain_of(part).size();
    if (options_.is_root && begin < chain.size() && options_.is_root((*functions_)[chain[begin]]))
      part.function = chain[begin];
  }
  if (options_.filtered_by) part.filtered = options_.filtered_by(row, (*functions_)[part.function]);
  if (options_.shows_only_with_parent && parent == kNo<FunctionId>) part.filtered |= kByParent;
  const bool is_filtered = part.filtered != 0;
  for (std::size_t member = 0; member < members_; ++member) {
    member_totals_[member] += weight_of(row, member);
    if (is_filtered) filtered_[member] += weight_of(row, member);
  }
  if (is_filtered && !options_.keeps_filtered) return;

  RowFacts facts{row.thread, row.comm(), profile_->facts(row), &(*functions_)[part.function]};
  if (parent != kNo<FunctionId>) facts.parent = &(*functions_)[parent];
  part.group = group_of(facts, groups);
  part.mode =
      mode_of_level(options_.level_of ? options_.level_of(facts.facts) : (*functions_)[named.function].level);
  if (options_.is_parent) parents_.push_back(parent);
  parts_.push_back(part);
}

// The chain from the last is_root function on.
std::span<const FunctionId> Entries::chain_of(const Part& part) const {
  if (part.chain == kNo<ChainId>) return {};
  const auto chain = stacks_->frames(part.chain);
  if (!options_.is_root) return chain;
  for (std::size_t at = chain.size(); at-- > 0;) {
    if (options_.is_root((*functions_)[chain[at]])) return chain.subspan(at);
  }
  return chain;
}

GroupId Entries::group_of(const RowFacts& facts, Groups& groups) {
  words_.clear();
  const auto keys = index_->keys();
  for (std::size_t key = 0; key < keys.size(); ++key) {
    if (!is_of_function(keys[key])) words_.push_back(keys[key].key->identity(index_->show(key), facts));
  }
  return groups.id_of(words_);
}

// Returns the entry of the part's own function.
EntryId Entries::add_part(PartId id) {
  const Part& part = parts_[id];
  const auto chain = chain_of(part);
  for (std::size_t member = 0; member < members_; ++member) current_[member] = weight_of(id, member);
  const char own_level = (*functions_)[part.function].level;
  const auto make = [&](FunctionId function, char level, bool is_own) {
    cells_.push_back({function, part.group});
    selves_.resize(selves_.size() + members_);
    if (options_.has_children) children_.resize(selves_.size());
    of_chains_.push_back({});
    return value_of(entries_.push_back({.part = id, .level = level, .is_own = is_own}));
  };
  const EntryId own{
      index_->find_or_make(part.function, [&] { return make(part.function, own_level, true); })};
  add_own(own, part.mode);
  count(id, own, options_.borrows_chains ? 0 : chain.size());
  if (!options_.has_children) return own;
  Levels levels(*functions_, chain, own_level);
  for (std::size_t at = 0; at < chain.size(); ++at) {
    const EntryId entry{
        index_->find_or_make(chain[at], [&] { return make(chain[at], levels.at(at), false); })};
    if (of_chains_[entry].last_part != id) count(id, entry, chain.size() - at);
  }
  return own;
}

void Entries::add_own(EntryId entry, CpuMode mode) {
  auto& of_mode = of_modes_[static_cast<std::size_t>(mode)];
  const bool counts_mode = options_.counts_modes && mode != CpuMode::Kernel;
  if (counts_mode && of_mode.size() < selves_.size()) of_mode.resize(selves_.size());
  for (std::size_t member = 0; member < members_; ++member) {
    const std::size_t at = slot_of(entry, member);
    selves_[at] += current_[member];
    if (counts_mode) of_mode[at] += current_[member];
  }
}

std::uint64_t Entries::mode_period(CpuMode mode, EntryId entry, std::size_t member) const {
  const auto& of_mode = of_modes_[static_cast<std::size_t>(mode)];
  const std::size_t at = slot_of(entry, member);
  return at < of_mode.size() ? period(of_mode[at], member) : 0;
}

// `depth`: the number of frames of the row's part of the chain.
void Entries::count(PartId part, EntryId entry, std::size_t depth) {
  OfChains& row = of_chains_[entry];
  row.last_part = part;
  if (depth > 0) ++row.strands;
  // As perf: only rows with samples of the group's first event have a depth.
  if (current_[0].samples != 0) row.max_depth = std::max(row.max_depth, static_cast<std::uint32_t>(depth));
  if (!options_.has_children) return;
  for (std::size_t member = 0; member < members_; ++member)
    children_[slot_of(entry, member)] += current_[member];
}

// Of a sample's own address, relative to the module; of others, as sampled.
std::uint64_t Entries::address_of(EntryId entry) const {
  const Function& function = function_of(entry);
  if (!index_->facts().options().is_verbose && !function.is_data) return 0;
  if (!entries_[entry].is_own) return function.first_ip;
  const Location& location = index_->facts().session().resolver().location(row_of(entry).location);
  if (location.mapping == nullptr) return location.ip.value;
  // Also for BPF programs, whose frames are shown by runtime address.
  if (location.mapping->module->kind == symbolize::ModuleKind::Bpf)
    return location.ip.value - location.mapping->start;
  return location.mapping->nameless_address(location.ip);
}

RowFacts Entries::facts(EntryId entry) const {
  const ProfileRow& row = row_of(entry);
  std::uint64_t samples = 0;
  for (std::size_t member = 0; member < members_; ++member)
    samples += selves_[slot_of(entry, member)].samples;
  return {.thread = row.thread,
          .comm = row.comm(),
          .facts = profile_->facts(row),
          .function = &function_of(entry),
          .level = options_.level_of ? options_.level_of(profile_->facts(row)) : entries_[entry].level,
          .address = address_of(entry),
          .parent = parent_of(entries_[entry].part),
          .samples = samples};
}

std::uint64_t Entries::value(Column::Kind kind, EntryId entry, std::size_t member) const {
  const Totals of = totals(entry, member);
  switch (kind) {
    case Column::Kind::Children:
      return options_.has_children ? period(of.children, member) : 0;
    case Column::Kind::Overhead:
    case Column::Kind::Period:
      return period(of.self, member);
    case Column::Kind::OverheadSys:
      return period(of.self, member) - mode_period(CpuMode::User, entry, member) -
             mode_period(CpuMode::GuestKernel, entry, member) -
             mode_period(CpuMode::GuestUser, entry, member);
    case Column::Kind::OverheadUser:
      return mode_period(CpuMode::User, entry, member);
    case Column::Kind::OverheadGuestSys:
      return mode_period(CpuMode::GuestKernel, entry, member);
    case Column::Kind::OverheadGuestUser:
      return mode_period(CpuMode::GuestUser, entry, member);
    case Column::Kind::Samples:
      return of.self.samples;
    case Column::Kind::Latency:
      return latency() == nullptr ? 0 : latency()->value(Column::Kind::Overhead, entry, member);
    case Column::Kind::LatencyChildren:
      return latency() == nullptr ? 0 : latency()->value(Column::Kind::Children, entry, member);
    case Column::Kind::Key:
      return 0;
  }
  return 0;
}

// Callers are above their callees: in caller order, rows with longer chains come first; in callee order, rows
// with shorter ones.
std::function<std::uint32_t(std::uint32_t)> Entries::depth() const {
  if (!options_.graph || !options_.has_children) return nullptr;
  return [this, is_from_caller = *options_.graph == ChainOrder::Caller](std::uint32_t row) {
    const std::uint32_t depth = of_chains_[EntryId{row}].max_depth;
    return is_from_caller ? ~depth : depth;
  };
}

std::vector<EntryId> Entries::sorted(std::span<const Column> columns, format::WorkerPool* pool,
                                     std::function<void()> beside) const {
  const SortInput input{.rows = size(),
                        .facts = [this](std::uint32_t row) { return facts(EntryId{row}); },
                        .members = members_,
                        .first_member = first_member(),
                        .values =
                            [this](Column::Kind kind, std::size_t member, std::span<std::uint64_t> values) {
                              for (const EntryId entry : ids())
                                values[index_of(entry)] = value(kind, entry, member);
                            },
                        .depth = depth(),
                        .pool = pool,
                        .beside = std::move(beside)};
  const auto order = sorted_rows(index_->keys(), index_->facts(), columns, input);
  std::vector<EntryId> sorted(order.size());
  std::ranges::transform(order, sorted.begin(), [](std::uint32_t row) { return EntryId{row}; });
  return sorted;
}

std::vector<std::vector<Strand>> Entries::strands(std::span<const EntryId> entries) const {
  std::vector<std::vector<Strand>> lists(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) lists[i].reserve(of_chains_[entries[i]].strands);
  const auto group_of = [&](std::uint32_t i) { return cells_[entries[i]].group; };
  std::vector<std::uint32_t> by_group(entries.size());
  std::vector<PartId> last_part(entries.size(), kNo<PartId>);
  std::iota(by_group.begin(), by_group.end(), 0);
  std::ranges::sort(by_group, {}, group_of);
  for (std::size_t at = 0; at < by_group.size();) {
    const GroupId group = group_of(by_group[at]);
    index_->begin_group();
    for (; at < by_group.size() && group_of(by_group[at]) == group; ++at) {
      const std::uint32_t list = by_group[at];
      index_->find_or_make(cells_[entries[list]].function, [list] { return list; });
    }
    add_strands(group, lists, last_part);
  }
  return lists;
}

// For the lists in the index; functions of no list are kNone.
void Entries::add_strands(GroupId group, std::vector<std::vector<Strand>>& lists,
                          std::vector<PartId>& last_part) const {
  for (const PartId id : parts_of(group)) {
    const Part& part = parts_[id];
    const Weight weight = weight_of(id, 0);
    const auto chain = chain_of(part);
    if (weight.samples == 0 || chain.empty()) continue;
    const auto meet = [&](FunctionId function, std::size_t position, bool has_graph) {
      const std::uint32_t list = index_->find_or_make(function, [] { return EntryIndex::kNone; });
      if (list == EntryIndex::kNone || last_part[list] == id) return;
      last_part[list] = id;
      if (has_graph) lists[list].push_back({chain.subspan(position), period(weight, 0), weight.samples});
    };
    meet(part.function, 0, !options_.borrows_chains);
    for (std::size_t at = 0; options_.has_children && at < chain.size(); ++at) meet(chain[at], at, true);
  }
}

}  // namespace tacho::report
