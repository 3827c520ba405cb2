// Profiles, and the stacks with marks that their rows can have.
#pragma once

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
#include "report/samples/address_table.h"
#include "report/samples/by_number.h"
#include "report/samples/index_table.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/session.h"
#include "report/samples/stable_array.h"

namespace tacho::report {

// Interned stacks with a word for each frame, so that frames of one address can differ: by the step of a
// branch, or a mark between two threads.

class MarkedStacks {
 public:
  // `words`: as many as `frames`. The stack has a number of its own, from 0 up. Valid as long as this.
  const Stack* intern(std::span<const std::uint32_t> frames, std::span<const std::uint32_t> words);
  // Those of a stack from here.
  std::span<const std::uint32_t> words_of(const Stack& stack) const { return words_of_[stack.number]; }
  // What frames and words take.
  std::size_t bytes() const { return bytes_; }

 private:
  std::span<const std::uint32_t> keep(std::span<const std::uint32_t> words);

  StableArray<Stack> stacks_;
  std::vector<std::span<const std::uint32_t>> words_of_;  // by stack
  IndexTable by_frames_;
  std::vector<format::LargePiece<std::uint32_t>> memory_;
  std::size_t bytes_ = 0;          // of it, given out
  std::uint32_t* free_ = nullptr;  // in the last piece
  std::size_t left_ = 0;           // words from there on
};

// Call chains of waits with their wakers: below the stack that went to sleep stands a mark, then the
// stack that woke it, from its leaf on, and the waker's name; then the same of who had woken that one.

class WaitChains {
 public:
  static constexpr std::uint32_t kPlace = 0;  // in names_of(): the frame is a place like any

  // The wait's chain, leaf first like all stacks: so what stands behind the mark comes first here. It has a
  // number of its own: a run takes all stacks from here, or none. Valid as long as this.
  const Stack* stack_of(const Wait& wait);

  // The bytes that chains take: each distinct one its frames.
  std::size_t bytes() const { return stacks_.bytes(); }

  // Of each frame of such a stack: kPlace, or what name() calls it. Empty: all are places.
  std::span<const std::uint32_t> names_of(const Stack& stack) const { return stacks_.words_of(stack); }
  // Lives as long as the session.
  std::string_view name(std::uint32_t number) const { return names_[number - 1]; }

 private:
  std::uint32_t number_of(std::string_view name);
  void add(std::uint32_t location, std::uint32_t name) {
    frames_.push_back(location);
    frame_names_.push_back(name);
  }

  MarkedStacks stacks_;  // with their frames' names
  std::vector<std::string_view> names_;
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
  std::vector<std::uint32_t> frames_, frame_names_;  // of the wait at hand
};

// A profile: each distinct combination of event, process name, facts, address and call chain once, with its
// weight. Memory and the cost of later steps grow with the number of combinations, not of samples: names and
// chains are looked up for a new row, rows are sorted after the run.

// Reads one fact of a sample as a number: its CPU, a part of its time, the number of an interned text. Equal
// facts have equal numbers.
using FactReader = std::function<std::uint64_t(const ResolvedSample&)>;

// Events that share rows, those of a group or one alone: `members` from event number `leader` on.
struct EventBlock {
  std::uint32_t leader = 0, members = 1;
};

// By what rows differ, beside their block and their address.
struct ProfileShape {
  bool by_stack = true;  // false: call chains are not looked at
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

// A copy of what a profile needs of a sample, for samples that are counted later.
struct LateSample {
  std::size_t event = 0;
  std::uint32_t place = 0;  // number of its location
  std::uint32_t facts = 0;  // as facts_of() numbered them
  const Thread* thread = nullptr;
  std::string_view comm;
  const Stack* stack = nullptr;  // null: there is no call chain
};

// There may be one for each sample, so each byte counts.
struct ProfileRow {
  std::uint32_t block = 0;
  std::uint32_t location = 0;  // number of the samples' own place
  std::uint32_t facts = 0;     // see Profile::facts()
  std::uint32_t comm_size = 0;
  const Thread* thread = nullptr;    // of the first sample, and of all with `by_thread`
  const char* comm_begin = nullptr;  // see comm()
  // See Profile::weights(). Where the block has one member: its weight. Else
  // `period` is where its weights begin.
  Weight only;

  // As it was at the first sample, and at all with `by_comm`; equal names share their bytes.
  std::string_view comm() const { return {comm_begin, comm_size}; }
};
static_assert(sizeof(ProfileRow) == 48);

class Profile {
 public:
  // `blocks`: every event that is known by now belongs to exactly one.
  Profile(std::vector<EventBlock> blocks, ProfileShape shape);

  // One sample that counts for `period`.
  void add(const ResolvedSample& sample, std::uint64_t period) {
    add({.event = sample.event_index,
         .place = sample.place,
         .facts = shape_.facts.empty() ? 0 : facts_of(sample),
         .thread = sample.thread,
         .comm = sample.comm,
         .stack = sample.stack},
        period);
  }
  // A row without a sample of its own; kNone as below. And what its samples add up to, once they are.
  std::uint32_t row_for(const LateSample& sample);
  void count(std::uint32_t row, std::size_t event, const Weight& weight);
  // The sample's row; IndexTable::kNone: its event is in no block.
  std::uint32_t add(const LateSample& sample, std::uint64_t period);
  // Samples of events that are in no block: in a pipe, event descriptions may come after their samples.
  std::uint64_t left_out() const { return left_out_; }
  // The number of the facts that the shape's readers read of the sample.
  std::uint32_t facts_of(const ResolvedSample& sample);

  std::span<const EventBlock> blocks() const { return blocks_; }
  // In the order of their first samples.
  const StableArray<ProfileRow>& rows() const { return rows_; }
  bool looks_at_stacks() const { return shape_.by_stack; }
  const Stack* stack_of(std::size_t row) const {  // null: there is no call chain
    return shape_.by_stack ? stacks_[row] : nullptr;
  }
  // The numbers of a block's rows, in the same order.
  std::span<const std::uint32_t> rows_of(std::uint32_t block) const { return rows_of_[block]; }
  // One for each of the shape's readers, in their order.
  std::span<const std::uint64_t> facts(const ProfileRow& row) const {
    const std::size_t count = shape_.facts.size();
    return std::span(facts_).subspan(row.facts * count, count);
  }
  // One for each member of the row's block.
  std::span<const Weight> weights(const ProfileRow& row) const {
    if (blocks_[row.block].members == 1) return {&row.only, 1};
    return std::span(weights_).subspan(row.only.period, blocks_[row.block].members);
  }
  // Frees the tables that find rows: no sample is added later.
  void end_lookups();

 private:
  // By what rows of one address and call chain differ.
  struct Rest {
    std::uint32_t block = 0, location = 0, facts = 0;
    const Thread* thread = nullptr;  // null: not a part of the key
    const char* comm = nullptr;      // likewise
    bool operator==(const Rest&) const = default;
  };
  // The first row of a stack, or without stacks of an address: mostly the only one.
  struct FirstRow {
    std::uint32_t row = IndexTable::kNone;
  };
  std::uint32_t row_of(const LateSample& sample, const Rest& rest, const Stack* stack);
  std::uint32_t make_row(const LateSample& sample, const Rest& rest, const Stack* stack);
  Rest rest_of(const ProfileRow& row) const;

  std::vector<EventBlock> blocks_;
  std::vector<std::uint32_t> block_of_;  // by event
  ProfileShape shape_;
  StableArray<ProfileRow> rows_;
  StableArray<const Stack*> stacks_;                 // of rows; none where call chains are not looked at
  std::vector<std::vector<std::uint32_t>> rows_of_;  // by block
  std::vector<Weight> weights_;                      // of blocks with several members
  std::vector<std::uint64_t> facts_;
  std::vector<std::uint64_t> asked_;  // scratch: the sample's own
  std::uint32_t last_facts_ = 0, fact_lists_ = 0;
  std::uint64_t left_out_ = 0;
  IndexTable by_facts_, by_rest_;
  ByNumber<FirstRow> by_stack_, by_place_;  // by stack, by location
};

// Events in columns side by side, in a report or in annotated code.

// Which events are side by side.
enum class Grouping : std::uint8_t {
  AsRecorded,  // those of each group
  Always,      // of a capture without groups, all of them
  Never,
};

// The most members of a group that are shown side by side: each row has a number for each member, and a
// capture's header could name any number of members.
inline constexpr std::uint64_t kMostMembers = 64;

// Groups of more than one event, by leader. A group of all events only where the capture has none; it has no
// name.
std::vector<format::EventGroup> groups_of(const Session& session, Grouping grouping);
// The events of a group side by side, unless there are too many, and all others alone. `events`: how many.
std::vector<EventBlock> blocks_of(std::size_t events, std::span<const format::EventGroup> groups);

// A note about the first group that has more members; nothing: there is none.
std::optional<std::string> split_group(std::span<const format::EventGroup> groups);

}  // namespace tacho::report
