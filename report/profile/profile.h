// Profiles: weights by event, facts, address and call chain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "report/profile/event_blocks.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/tables.h"

namespace tacho::report {

// Reads one fact of a sample as a number: its CPU, a part of its time, the number of an interned text. Equal
// facts have equal numbers.
using FactReader = std::function<std::uint64_t(const ResolvedSample&)>;

// The properties by which rows differ, besides their block and address.
struct ProfileShape {
  bool by_stack = true;  // false: call chains are ignored
  bool by_comm = true;
  bool by_thread = false;
  std::vector<FactReader> facts;
};

struct Weight {
  std::uint64_t period = 0, samples = 0;

  Weight& operator+=(const Weight& other) {
    period += other.period;
    samples += other.samples;
    return *this;
  }
};

// The parts of a sample that a profile needs, copied, for samples that are added later.
struct LateSample {
  std::size_t event = 0;
  LocationId location{};
  FactsId facts{};  // from facts_of()
  const Thread* thread = nullptr;
  std::string_view comm;
  const Stack* stack = nullptr;  // null: no call chain
};

// There may be one for each sample, so each byte counts.
struct ProfileRow {
  BlockId block{};
  LocationId location{};  // of the samples' own address
  FactsId facts{};        // see Profile::facts()
  std::uint32_t comm_size = 0;
  const Thread* thread = nullptr;    // of the first sample; with `by_thread`, of all
  const char* comm_begin = nullptr;  // see comm()
  // With one member in the block: its weight. Else `period` is the index of its weights. See
  // Profile::weights().
  Weight only;

  // At the first sample; with `by_comm`, at all. Equal names share their bytes.
  std::string_view comm() const { return {comm_begin, comm_size}; }
};
static_assert(sizeof(ProfileRow) == 48);

// A profile: each distinct combination of event, process name, facts, address and call chain, with its
// weight. Memory and the cost of later steps grow with the number of combinations, not of samples: names and
// chains are looked up for a new row, and rows are sorted after the run.
class Profile {
 public:
  // `blocks`: every event that is known by now belongs to exactly one.
  Profile(const std::vector<EventBlock>& blocks, ProfileShape shape);

  // Adds one sample with weight `period`.
  void add_sample(const ResolvedSample& sample, std::uint64_t period) {
    add_sample({.event = sample.event_index,
                .location = sample.location_id,
                .facts = facts_of(sample),
                .thread = sample.thread,
                .comm = sample.comm,
                .stack = sample.stack},
               period);
  }
  // A row without a sample; kNo as below. Then adds weights to rows.
  RowId row_for(const LateSample& sample);
  void count(RowId row, std::size_t event, const Weight& weight);
  // Returns the sample's row; kNo: its event is in no block.
  RowId add_sample(const LateSample& sample, std::uint64_t period);
  // Samples of events that are in no block: in a pipe, event descriptions may come after their samples.
  std::uint64_t left_out() const { return left_out_; }
  // The facts that the shape's readers return for the sample.
  FactsId facts_of(const ResolvedSample& sample);

  const IdVector<BlockId, EventBlock>& blocks() const { return blocks_; }
  // In the order of their first samples.
  const StableArray<ProfileRow, RowId>& rows() const { return rows_; }
  bool looks_at_stacks() const { return shape_.by_stack; }
  const Stack* stack_of(RowId row) const {  // null: no call chain
    return shape_.by_stack ? stacks_[row] : nullptr;
  }
  // A block's rows, in the same order.
  std::span<const RowId> rows_of(BlockId block) const { return rows_of_[block]; }
  // One fact for each of the shape's readers, in order.
  std::span<const std::uint64_t> facts(const ProfileRow& row) const {
    return shape_.facts.empty() ? std::span<const std::uint64_t>() : facts_[row.facts];
  }
  // One weight for each member of the row's block.
  std::span<const Weight> weights(const ProfileRow& row) const {
    if (blocks_[row.block].members == 1) return {&row.only, 1};
    return std::span(weights_).subspan(row.only.period, blocks_[row.block].members);
  }
  // Frees the look-up tables: no sample is added afterwards.
  void end_lookups();

 private:
  // The properties by which rows of one address and call chain differ.
  struct Rest {
    BlockId block{};
    LocationId location{};
    FactsId facts{};
    const Thread* thread = nullptr;  // null: not part of the key
    const char* comm = nullptr;      // the same
    bool operator==(const Rest&) const = default;
  };
  RowId row_of(const LateSample& sample, const Rest& rest, const Stack* stack);
  RowId make_row(const LateSample& sample, const Rest& rest, const Stack* stack);
  Rest rest_of(const ProfileRow& row) const;

  IdVector<BlockId, EventBlock> blocks_;
  std::vector<BlockId> block_of_;  // by event
  ProfileShape shape_;
  StableArray<ProfileRow, RowId> rows_;
  StableArray<const Stack*, RowId> stacks_;  // empty if call chains are ignored
  IdVector<BlockId, std::vector<RowId>> rows_of_;
  std::vector<Weight> weights_;  // of blocks with several members
  DistinctLists<FactsId, std::uint64_t> facts_;
  std::vector<std::uint64_t> current_;  // scratch: the current sample's
  std::uint64_t left_out_ = 0;
  IndexTable<RowId> by_rest_;
  // The first row of a stack (without stacks: of an address), usually the only one.
  IdMap<StackId, RowId> by_stack_{kNo<RowId>};
  IdMap<LocationId, RowId> by_location_{kNo<RowId>};
};

}  // namespace tacho::report
