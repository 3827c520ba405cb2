// Profiles: weights by event, facts, address and call chain; and the stacks with marks that their rows can
// have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/large_pages.h"
#include "format/container/environment.h"
#include "report/query/waits.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/session.h"
#include "report/samples/tables.h"

namespace tacho::report {

// The item for which same(item) is true; if there is none, `item` is added. `table` has the indices of
// `items` by `hash`.
template <class Items, class Same>
typename Items::value_type& find_or_add(IndexTable<>& table, std::uint64_t hash, Items& items, Same&& same,
                                        typename Items::value_type item) {
  return items[table.find_or_make(
      hash, [&](std::uint32_t known) { return same(items[known]); },
      [&] {
        items.push_back(std::move(item));
        return static_cast<std::uint32_t>(items.size() - 1);
      })];
}

// Interned stacks with a mark for each frame, so that frames of one address can differ: by the step of a
// branch, or by a name between two threads.
template <class Mark>
class MarkedStacks {
 public:
  // `marks`: one for each of `frames`. Valid as long as this.
  const Stack* intern(std::span<const LocationId> frames, std::span<const Mark> marks) {
    std::uint64_t hash = frames.size();
    for (std::size_t i = 0; i < frames.size(); ++i)
      hash = by_frames_.hash.add(hash, std::uint64_t{value_of(marks[i])} << 32 | value_of(frames[i]));
    return &stacks_[by_frames_.find_or_make(
        hash,
        [&](StackId known) {
          return std::ranges::equal(stacks_[known].frames, frames) &&
                 std::ranges::equal(marks_of_[known], marks);
        },
        [&] {
          marks_of_.push_back(marks_.keep(marks));
          return stacks_.push_back({stacks_.next_id(), frames_.keep(frames)});
        })];
  }
  // The marks of a stack of this object.
  std::span<const Mark> marks_of(const Stack& stack) const { return marks_of_[stack.id]; }
  // The memory of frames and marks.
  std::size_t bytes() const { return frames_.bytes() + marks_.bytes(); }

 private:
  StableArray<Stack, StackId> stacks_;
  IdVector<StackId, std::span<const Mark>> marks_of_;
  IndexTable<StackId> by_frames_;
  ListStore<LocationId> frames_;
  ListStore<Mark> marks_;
};

// Call chains of waits with their wakers: below the stack that went to sleep comes a mark, then the waker's
// stack, from its leaf on, and the waker's name; then the same for the waker's waker.
class WaitChains {
 public:
  // The wait's chain, leaf first like all stacks; so the frames after the mark come first here. Its id is of
  // this object: a run uses stacks of one object only. Valid as long as this.
  const Stack* stack_of(const Wait& wait);

  // The memory of the distinct chains.
  std::size_t bytes() const { return stacks_.bytes(); }

  // For each frame of such a stack: its name, or kNo for an ordinary address.
  std::span<const WaitNameId> names_of(const Stack& stack) const { return stacks_.marks_of(stack); }
  // Lives as long as the session.
  std::string_view name(WaitNameId id) const { return names_[id]; }

 private:
  WaitNameId id_of_name(std::string_view name);
  void add_frame(LocationId location, WaitNameId name) {
    frames_.push_back(location);
    frame_names_.push_back(name);
  }

  MarkedStacks<WaitNameId> stacks_;  // with their frames' names
  IdVector<WaitNameId, std::string_view> names_;
  std::unordered_map<std::string_view, WaitNameId> by_name_;
  std::vector<LocationId> frames_;       // of the current wait
  std::vector<WaitNameId> frame_names_;  // likewise
};

// Reads one fact of a sample as a number: its CPU, a part of its time, the number of an interned text. Equal
// facts have equal numbers.
using FactReader = std::function<std::uint64_t(const ResolvedSample&)>;

// The events that share rows: the `members` events of a group from event `leader` on, or a single event.
struct EventBlock {
  std::uint32_t leader = 0, members = 1;
};

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

// Which events are side by side, in columns of a report or of annotated code.
enum class Grouping : std::uint8_t {
  AsRecorded,  // the events of each group
  Always,      // all events, if the capture has no groups
  Never,
};

// The maximum of members in columns: each row has a number for each member, and the header of a capture could
// name any number of members.
inline constexpr std::uint64_t kMostMembers = 64;

// Groups of more than one event, by leader. A group of all events, only if the capture has no groups, has no
// name.
std::vector<format::EventGroup> groups_of(const Session& session, Grouping grouping);
// A block for each group with few enough members, and one for each other event. `events`: their number.
std::vector<EventBlock> blocks_of(std::size_t events, std::span<const format::EventGroup> groups);

// A note about the first group with too many members; nullopt: there is none.
std::optional<std::string> split_group(std::span<const format::EventGroup> groups);

}  // namespace tacho::report
