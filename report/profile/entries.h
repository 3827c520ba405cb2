// The rows of a report (perf: hist entries): the rows of a profile, added up by sort keys.
//
// With children, a sample counts for the row of each function in its call chain, once for each row. The row
// of the sample's own address has the whole chain; other rows have the part from their function on, in the
// order of drawing. Call graphs are made of these parts.
//
// If only rows above a threshold have graphs and there are no children (LateChains), the chains of these rows
// are named after the rows are made.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "report/profile/call_tree.h"
#include "report/profile/entry_index.h"
#include "report/profile/function.h"
#include "report/profile/function_table.h"
#include "report/profile/name_pattern.h"
#include "report/profile/named_rows.h"
#include "report/profile/row_order.h"
#include "report/profile/sort_keys.h"
#include "report/samples/tables.h"

namespace tacho::report {

// The filters that refuse a sample, one bit each.
using FilterBits = std::uint8_t;
inline constexpr FilterBits kByThread = 1, kByModule = 2, kBySymbol = 4, kByParent = 8, kBySocket = 16,
                            kByParallelism = 32;

// The CPU mode of the code, as reports count it. User includes hypervisor and unknown.
enum class CpuMode : std::uint8_t { Kernel, User, GuestKernel, GuestUser };

// Call chains that are named after the rows are made. For blocks of one event only.
struct LateChains {
  FunctionStacks* stacks = nullptr;  // names them; null: chains came with the rows
  double least_percent = 0;          // the threshold for rows with a graph, of the event's total
  bool is_relative = false;          // of the samples that pass the filters
};

struct EntryOptions {
  bool has_children = false;
  // The order of call graphs: of rows with equal children, callers come before callees. nullopt: no graphs.
  std::optional<ChainOrder> graph;
  bool hides_unknown = false;    // leaves out samples and frames without a function's name
  std::size_t first_member = 0;  // index in a group: its weights decide the order first
  // If all periods of an event are 0 (BPF output), weights are periods and not samples.
  bool keeps_zero_periods = false;
  FunctionTest is_parent;  // for the key `parent`; null: unused
  // A call chain begins, in the order of drawing, with the last such function, and the sample counts for it.
  // Null: unused.
  FunctionTest is_root;
  // Call chains belong to other samples: they make rows of callers with graphs, but no graph of the samples'
  // own rows.
  bool borrows_chains = false;
  bool shows_only_with_parent = false;
  // Rows that a filter refuses count in the totals only. Null: no filter.
  std::function<FilterBits(const ProfileRow&, const Function&)> filtered_by;
  bool keeps_filtered = false;  // refused rows make entries, too, which are marked
  // The level shown in place of the function's. Null: the function's.
  std::function<char(std::span<const std::uint64_t> facts)> level_of;
  bool counts_modes = true;  // for the columns of CPU modes: OverheadSys, OverheadUser, guests
  std::function<bool(const ProfileRow&)> is_left_out;
  // The weight that replaces a row's own. Null: its own.
  std::function<Weight(const ProfileRow&, const Weight&)> weighed_by;
  LateChains late{};
  format::WorkerPool* pool = nullptr;  // the threads that do the work; null: the caller's thread
  // The same rows and options, weighted by latency. Null: without --latency.
  const class Entries* latency = nullptr;
};

class Entries {
 public:
  struct Totals {
    Weight self, children;  // `children` includes the row's own; without children, both are equal
  };
  // Makes the entries of one block of the profile. The arguments must outlive this.
  Entries(const NamedRows& names, BlockId block, EntryIndex& index, EntryOptions options);

  std::size_t size() const { return entries_.size(); }
  Ids<EntryId> ids() const { return entries_.ids(); }
  std::size_t members() const { return members_; }
  std::size_t first_member() const { return options_.first_member < members_ ? options_.first_member : 0; }
  RowFacts facts(EntryId entry) const;
  Totals totals(EntryId entry, std::size_t member) const {
    const std::size_t at = slot_of(entry, member);
    return {selves_[at], options_.has_children ? children_[at] : selves_[at]};
  }
  // A member's number in a column; columns of children are 0 without children. If all periods of an event are
  // 0 (BPF output), its samples are the weight.
  std::uint64_t value(Column::Kind kind, EntryId entry, std::size_t member) const;
  // The sum of all samples of a member; and, with `filtered_by`, of the refused ones.
  const Weight& total(std::size_t member) const { return member_totals_[member]; }
  const Weight& filtered(std::size_t member) const { return filtered_[member]; }
  // The total (100 %) of a member; `is_relative`: without refused samples.
  std::uint64_t whole(std::size_t member, bool is_relative) const {
    const Weight left_out = is_relative ? filtered_[member] : Weight();
    const Weight& all = member_totals_[member];
    return counts_samples(member) ? all.samples - left_out.samples : all.period - left_out.period;
  }
  // The entries weighted by latency; null: without --latency.
  const Entries* latency() const { return options_.latency; }

  // The filters that refuse the first sample of an entry; 0 without `keeps_filtered`.
  FilterBits filtered_by(EntryId entry) const { return parts_[entries_[entry].part].filtered; }

  // All rows in the report's order (sorted_rows()). `pool`, `beside`: as in SortInput.
  std::vector<EntryId> sorted(std::span<const Column> columns, format::WorkerPool* pool = nullptr,
                              std::function<void()> beside = {}) const;

  // The parts of call chains in the first member's samples, by row; one list for each of `entries`. Equal
  // chains may occur more than once.
  std::vector<std::vector<Strand>> strands(std::span<const EntryId> entries) const;
  // The number of these parts.
  std::size_t strand_count(EntryId entry) const { return of_chains_[entry].strands; }

 private:
  enum class PartId : std::uint32_t {};
  struct Entry {
    PartId part{};  // the first part of the entry
    char level = '.';
    bool is_own = true;  // made by a sample's own address
  };
  struct Cell {
    FunctionId function{};
    GroupId group{};
  };
  // The call chains of an entry.
  struct OfChains {
    PartId last_part = kNo<PartId>;  // the last part that was counted: each counts once
    std::uint32_t max_depth = 0;     // frames of the longest part of a chain
    std::uint32_t strands = 0;
  };
  // A row of the profile that makes entries.
  struct Part {
    RowId row{};
    GroupId group{};
    FunctionId function{};  // of the samples' own addresses, or found by is_root
    ChainId chain = kNo<ChainId>;
    FilterBits filtered = 0;
    CpuMode mode = CpuMode::User;  // of the samples' own addresses
  };
  class Levels;

  using Groups = DistinctLists<GroupId, std::uint64_t>;  // by the identities of keys without the function
  void add_row(RowId id, Groups& groups);
  GroupId group_of(const RowFacts& facts, Groups& groups);
  std::size_t slot_of(EntryId entry, std::size_t member) const { return index_of(entry) * members_ + member; }
  Weight weight_of(const ProfileRow& row, std::size_t member) const {
    const Weight& weight = profile_->weights(row)[member];
    return options_.weighed_by ? options_.weighed_by(row, weight) : weight;
  }
  Weight weight_of(PartId part, std::size_t member) const { return weight_of(row_of(part), member); }
  const Function* parent_of(PartId part) const {  // null: there is none
    return parents_.size() == 0 || parents_[part] == kNo<FunctionId> ? nullptr
                                                                     : &(*functions_)[parents_[part]];
  }
  void group_parts(std::size_t groups);
  EntryId add_part(PartId id);
  void add_own(EntryId entry, CpuMode mode);
  std::uint64_t mode_period(CpuMode mode, EntryId entry, std::size_t member) const;
  void count(PartId part, EntryId entry, std::size_t depth);
  std::span<const FunctionId> chain_of(const Part& part) const;
  void name_heavy(const IdVector<PartId, EntryId>& own_entries);
  std::span<const PartId> parts_of(GroupId group) const {
    const std::size_t at = index_of(group);
    return std::span(by_group_).subspan(group_starts_[at], group_starts_[at + 1] - group_starts_[at]);
  }
  const ProfileRow& row_of(PartId part) const { return profile_->rows()[parts_[part].row]; }
  const ProfileRow& row_of(EntryId entry) const { return row_of(entries_[entry].part); }
  const Function& function_of(EntryId entry) const { return (*functions_)[cells_[entry].function]; }
  std::uint64_t address_of(EntryId entry) const;
  bool counts_samples(std::size_t member) const {
    return member_totals_[member].period == 0 && !options_.keeps_zero_periods;
  }
  std::uint64_t period(const Weight& weight, std::size_t member) const {
    return counts_samples(member) ? weight.samples : weight.period;
  }
  template <class T>
  using Table = RowTable<T>;
  void add_strands(GroupId group, std::vector<std::vector<Strand>>& lists,
                   std::vector<PartId>& last_part) const;
  std::function<std::uint32_t(std::uint32_t row)> depth() const;

  const NamedRows* names_;
  const Profile* profile_;
  EntryIndex* index_;
  const FunctionTable* functions_;
  const FunctionStacks* stacks_;
  EntryOptions options_;
  std::size_t members_;
  std::vector<Weight> current_;       // scratch: of the part that is added
  std::vector<std::uint64_t> words_;  // scratch: of its group
  std::vector<Weight> member_totals_, filtered_;

  IdVector<PartId, Part> parts_;
  IdVector<PartId, FunctionId> parents_;     // found by --parent; may be empty
  std::vector<PartId> by_group_;             // all parts, sorted by group
  std::vector<std::uint32_t> group_starts_;  // in by_group_

  // One array for each fact of entries, as some are not always needed.
  IdVector<EntryId, Entry> entries_;
  IdVector<EntryId, Cell> cells_;
  IdVector<EntryId, OfChains> of_chains_;
  Table<Weight> selves_, children_;  // by entry, members_ for each
  // As selves_, by mode except Kernel, which is the rest. Shorter arrays end after the last weight of the
  // mode: guests are rare.
  std::array<Table<Weight>, 4> of_modes_;
};

}  // namespace tacho::report
