#include "report/profile/entries.h"

#include <algorithm>

#include "format/perf_abi.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

// The identity of a row's keys as words; `scratch` holds them, `known` all that were met, `width` words each.
template <class IdentityOf>
std::uint32_t intern(IndexTable& table, std::vector<std::uint64_t>& known, std::size_t width,
                     std::uint32_t& count, std::vector<std::uint64_t>& scratch, IdentityOf&& fill) {
  scratch.clear();
  fill();
  std::uint64_t hash = 0;
  for (const std::uint64_t word : scratch) hash = table.hash.add(hash, word);
  return table.find_or_make(
      hash,
      [&](std::uint32_t number) {
        return std::ranges::equal(std::span(known).subspan(number * width, width), scratch);
      },
      [&] {
        known.insert(known.end(), scratch.begin(), scratch.end());
        return count++;
      });
}

bool is_of_function(const KeyUse& use) {
  return use.key->of == KeyOf::Function || use.key->of == KeyOf::Place;
}

}  // namespace

Entries::Entries(const Profile& profile, std::uint32_t block, std::span<const KeyUse> keys,
                 const SampleFacts& facts, FunctionTable& functions, FunctionStacks* stacks,
                 EntryOptions options)
    : profile_(&profile),
      keys_(keys),
      facts_(&facts),
      functions_(&functions),
      stacks_(stacks),
      options_(std::move(options)),
      members_(profile.blocks()[block].members),
      member_totals_(members_),
      filtered_(members_),
      is_counted_(members_),
      function_keys_(static_cast<std::size_t>(std::ranges::count_if(keys, is_of_function))) {
  sample_keys_ = keys.size() - function_keys_;
  for (const std::uint32_t number : profile.rows_of(block)) add_row(number);
  for (std::size_t member = 0; member < members_; ++member)
    is_counted_[member] = member_totals_[member].period == 0;
  for (std::uint32_t number = 0; number < parts_.size(); ++number) add_part(number);
}

void Entries::add_row(std::uint32_t number) {
  const ProfileRow& row = profile_->rows()[number];
  Part part{.row = number, .function = functions_->of_place(row.location)};
  if (options_.hides_unknown && (*functions_)[part.function].name.empty()) return;
  if (options_.is_left_out && options_.is_left_out(row)) return;
  const std::span<const Weight> weights = profile_->weights(row);
  if (stacks_ != nullptr && row.stack != nullptr) {
    part.chain = stacks_->number_of(*row.stack);
    const auto chain = stacks_->frames(part.chain);
    if (options_.is_parent) {
      const auto parent = std::ranges::find_if(
          chain, [&](std::uint32_t id) { return options_.is_parent((*functions_)[id]); });
      if (parent != chain.end()) part.parent = *parent;
    }
    const std::size_t begin = chain.size() - chain_of(part).size();
    if (options_.is_root && begin < chain.size() && options_.is_root((*functions_)[chain[begin]]))
      part.function = chain[begin];
  }
  if (options_.filtered_by) part.filtered = options_.filtered_by(row, (*functions_)[part.function]);
  if (options_.shows_only_with_parent && part.parent == kNone) part.filtered |= kByParent;
  const bool is_filtered = part.filtered != 0;
  for (std::size_t member = 0; member < members_; ++member) {
    for (std::vector<Weight>* totals : {&member_totals_, is_filtered ? &filtered_ : nullptr}) {
      if (totals == nullptr) continue;
      (*totals)[member].period += weights[member].period;
      (*totals)[member].samples += weights[member].samples;
    }
  }
  if (is_filtered && !options_.keeps_filtered) return;

  RowFacts facts{row.thread, row.comm, profile_->facts(row), &(*functions_)[part.function]};
  if (part.parent != kNone) facts.parent = &(*functions_)[part.parent];
  part.group = group_of(row, facts);
  part.is_kernel = options_.level_of
                       ? options_.level_of(facts.facts) == 'k'
                       : facts_->session().resolver().location(row.location).cpumode == abi::kCpumodeKernel;
  const std::uint64_t hash =
      by_part_.hash(part.group, part.function, part.chain, part.is_kernel ? 1 : 0);
  const std::uint32_t found = by_part_.find_or_make(
      hash,
      [&](std::uint32_t known) {
        return parts_[known].group == part.group && parts_[known].function == part.function &&
               parts_[known].chain == part.chain && parts_[known].is_kernel == part.is_kernel;
      },
      [&] {
        part.weights = static_cast<std::uint32_t>(weights_.size());
        weights_.resize(weights_.size() + members_);
        parts_.push_back(part);
        return static_cast<std::uint32_t>(parts_.size() - 1);
      });
  for (std::size_t member = 0; member < members_; ++member) {
    Weight& weight = weights_[parts_[found].weights + member];
    weight.period += weights[member].period;
    weight.samples += weights[member].samples;
  }
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

std::uint32_t Entries::group_of(const ProfileRow&, const RowFacts& facts) {
  return intern(by_group_, group_identities_, sample_keys_, groups_, scratch_, [&] {
    for (std::size_t key = 0; key < keys_.size(); ++key) {
      if (!is_of_function(keys_[key])) scratch_.push_back(keys_[key].key->identity(show(key), facts));
    }
  });
}

std::uint32_t Entries::code_of(std::uint32_t function) {
  if (function >= code_of_.size()) code_of_.resize(functions_->size(), kNone);
  std::uint32_t& code = code_of_[function];
  if (code != kNone) return code;
  RowFacts facts;
  facts.function = &(*functions_)[function];
  code = intern(by_code_, code_identities_, function_keys_, codes_, scratch_, [&] {
    for (std::size_t key = 0; key < keys_.size(); ++key) {
      if (is_of_function(keys_[key])) scratch_.push_back(keys_[key].key->identity(show(key), facts));
    }
  });
  return code;
}

std::uint32_t Entries::entry_of(const Part& part, std::uint32_t function, char level, bool is_own) {
  return by_keys_.find_or_make(part.group, code_of(function), [&] {
    entries_.push_back({.row = part.row,
                        .function = function,
                        .parent = part.parent,
                        .level = level,
                        .filtered = part.filtered,
                        .is_own = is_own});
    totals_.resize(totals_.size() + members_);
    modes_.resize(modes_.size() + members_);
    return static_cast<std::uint32_t>(entries_.size() - 1);
  });
}

template <class EntryAt, class Met>
void Entries::walk(std::uint32_t number, std::vector<std::uint32_t>& stamps, EntryAt&& entry_at,
                   Met&& met) const {
  const Part& part = parts_[number];
  char level = (*functions_)[part.function].level;
  const auto meet = [&](std::uint32_t id, std::size_t position) {
    const Function& function = (*functions_)[id];
    if (function.module != nullptr) level = function.level;
    const std::uint32_t entry = entry_at(part, id, level);
    if (stamps.size() <= entry) stamps.resize(entries_.size() * 2, kNone);
    if (stamps[entry] == number) return;
    stamps[entry] = number;
    met(entry, position);
  };
  meet(part.function, 0);
  if (!options_.has_children) return;
  const auto chain = chain_of(part);
  for (std::size_t at = 0; at < chain.size(); ++at) meet(chain[at], at);
}

void Entries::add_part(std::uint32_t number) {
  const Part& part = parts_[number];
  const std::size_t depth = chain_of(part).size();
  bool is_own = true;
  walk(
      number, stamps_,
      [this, &is_own](const Part& of, std::uint32_t function, char level) {
        return entry_of(of, function, level, is_own);
      },
      [&](std::uint32_t entry, std::size_t position) {
        for (std::size_t member = 0; member < members_; ++member) {
          const Weight weight = weights_[part.weights + member];
          Totals& totals = totals_[entry * members_ + member];
          totals.children.period += weight.period;
          totals.children.samples += weight.samples;
          if (!is_own) continue;
          totals.self.period += weight.period;
          totals.self.samples += weight.samples;
          Modes& modes = modes_[entry * members_ + member];
          (part.is_kernel ? modes.kernel : modes.user) += period(weight, member);
        }
        is_own = false;
        entries_[entry].max_depth =
            std::max(entries_[entry].max_depth, static_cast<std::uint32_t>(depth - position));
        if (position < depth) ++entries_[entry].strands;
      });
}

// Relative to the module for a sample's own place, as it was sampled for the others.
std::uint64_t Entries::address_of(const Entry& entry) const {
  if (!facts_->options().is_verbose) return 0;
  if (!entry.is_own) return (*functions_)[entry.function].first_ip;
  const Location& place = facts_->session().resolver().location(profile_->rows()[entry.row].location);
  return place.mapping == nullptr ? place.ip.value : place.mapping->shown_address(place.ip);
}

RowFacts Entries::facts(std::uint32_t entry) const {
  const Entry& made = entries_[entry];
  const ProfileRow& row = profile_->rows()[made.row];
  std::uint64_t samples = 0;
  for (std::size_t member = 0; member < members_; ++member) samples += totals(entry, member).self.samples;
  return {.thread = row.thread,
          .comm = row.comm,
          .facts = profile_->facts(row),
          .function = &(*functions_)[made.function],
          .level = options_.level_of ? options_.level_of(profile_->facts(row)) : made.level,
          .address = address_of(made),
          .parent = made.parent == kNone ? nullptr : &(*functions_)[made.parent],
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
      return modes_[entry * members_ + member].kernel;
    case Column::Kind::OverheadUser:
      return modes_[entry * members_ + member].user;
    case Column::Kind::Samples:
      return of.self.samples;
    case Column::Kind::OverheadGuestSys:
    case Column::Kind::OverheadGuestUser:
    case Column::Kind::Key:
      return 0;  // another machine's samples are left out
  }
  return 0;
}

// A function stands above what it calls: longer chains lead on from the outermost place, shorter ones from
// the innermost.
std::strong_ordering Entries::deeper(std::uint32_t a, std::uint32_t b) const {
  const ProfileRow &row_a = profile_->rows()[entries_[a].row], &row_b = profile_->rows()[entries_[b].row];
  if (row_a.thread != row_b.thread) return std::strong_ordering::equal;
  const auto order = entries_[b].max_depth <=> entries_[a].max_depth;
  return *options_.graph == ChainOrder::Caller ? order : 0 <=> order;
}

std::vector<RowFacts> Entries::all_facts() const {
  std::vector<RowFacts> rows;
  rows.reserve(entries_.size());
  for (std::uint32_t entry = 0; entry < entries_.size(); ++entry) rows.push_back(facts(entry));
  return rows;
}

std::vector<std::uint32_t> Entries::found(std::span<const Column> columns) const {
  return RowOrder(keys_, *facts_).found(columns, all_facts());
}

std::vector<std::uint32_t> Entries::sorted(std::span<const Column> columns) const {
  const std::vector<RowFacts> rows = all_facts();
  WeighedRows weighed{.rows = rows,
                      .members = members_,
                      .value = [this](Column::Kind kind, std::uint32_t entry,
                                      std::size_t member) { return value(kind, entry, member); },
                      .deeper = {}};
  if (options_.graph) weighed.deeper = [this](std::uint32_t a, std::uint32_t b) { return deeper(a, b); };
  return RowOrder(keys_, *facts_).sorted(columns, columns, weighed);
}

std::vector<std::vector<Strand>> Entries::strands(std::span<const std::uint32_t> entries) const {
  std::vector<std::vector<Strand>> lists(entries.size());
  std::vector<std::uint32_t> list_of(entries_.size(), kNone);
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    list_of[entries[i]] = i;
    lists[i].reserve(entries_[entries[i]].strands);
  }
  std::vector<std::uint32_t> stamps;
  for (std::uint32_t number = 0; number < parts_.size(); ++number) {
    const Weight& weight = weights_[parts_[number].weights];
    const auto chain = chain_of(parts_[number]);
    if (weight.samples == 0 || chain.empty()) continue;
    walk(
        number, stamps,
        [this](const Part& part, std::uint32_t function, char) {
          return by_keys_.find(part.group, code_of_[function]);
        },
        [&](std::uint32_t entry, std::size_t position) {
          if (list_of[entry] == kNone) return;
          lists[list_of[entry]].push_back({chain.subspan(position), period(weight, 0), weight.samples});
        });
  }
  return lists;
}

}  // namespace tacho::report
