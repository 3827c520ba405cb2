// Parallel sums: several threads group samples by event, thread, location and stack. The view gets each group
// once, in the order of the groups' first samples, and the sums at the end. So its cost follows the number of
// groups, and its output is the same for any number of threads.
//
//   SumLane   a thread's tables: sums by group. If the view wants that, it merges addresses by function,
//             so that few groups are left to join
//   SumJoin   joins the lanes on one thread: interns locations and stacks in the session's tables, and gives
//             groups to the view
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "format/base/large_pages.h"
#include "report/samples/batches.h"
#include "report/samples/location_table.h"
#include "report/samples/sample_lane.h"
#include "report/samples/sink.h"
#include "report/samples/stack_table.h"
#include "report/samples/sum_view.h"
#include "report/samples/tables.h"

namespace tacho::report {

// Belongs to one thread at a time.
class SumLane {
 public:
  // All must outlive it. No other object uses `lane`.
  SumLane(SampleLane& lane, const symbolize::SymbolOptions& symbols, const SampleOptions& options,
          const SumShape& shape, const FunctionMerging& merging);

  // Adds samples that come after those of earlier calls. `first`: index of the first one over all batches.
  void add_samples(std::span<const BatchRecord> items, std::uint64_t first);

  // A group that is new since swap_new_groups(). Its locations are in locations().
  struct NewGroup {
    std::uint64_t first_sample = 0;  // index over all batches
    const Thread* thread = nullptr;
    std::string_view comm;
    std::uint32_t event = 0;
    LocationId location = kNo<LocationId>;            // of the sample
    std::uint32_t frames_begin = 0, frame_count = 0;  // in NewGroups::frames
    bool has_stack = false, is_payload = false;
  };
  struct NewGroups {
    std::vector<NewGroup> groups;
    std::vector<LocationId> frames;
  };
  // Moves the new groups to `out`, in the order of their first samples, and goes on with the memory that
  // `out` had.
  void swap_new_groups(NewGroups& out);
  const StableArray<Location, LocationId>& locations() const { return location_table_->locations(); }

  // A group's sums.
  struct Sum {
    std::uint64_t period = 0, samples = 0;
    std::uint32_t event = 0;
  };
  std::size_t size() const { return sums_.size(); }
  Ids<LaneGroupId> groups() const { return sums_.ids(); }
  const Sum& operator[](LaneGroupId group) const { return sums_[group]; }
  const SumTotals& totals() const { return totals_; }
  // Empties the tables: groups that come again are new, and locations get new numbers.
  void forget();

 private:
  enum class KeyId : std::uint32_t {};        // of a KeyedGroup
  enum class ThreadKeyId : std::uint32_t {};  // of a ThreadKey
  // The part of a group's key besides location and chain.
  struct ThreadKey {
    const Thread* thread = nullptr;
    const char* comm = nullptr;
    std::uint32_t event = 0;
    bool operator==(const ThreadKey&) const = default;
  };
  // Offsets of fields, for events whose samples have only fixed-size fields and perhaps a call chain.
  struct Layout {
    bool has_fast_path = false, has_chain = false;
    bool counts_zero = false;  // period 0 counts as 1
    bool has_time = false;
    std::uint16_t ip = 0, period = 0, time = 0;  // offset in the record, bytes; 0: not recorded
    std::uint16_t fixed_size = 0;                // of the header and the fields before the call chain, bytes
    std::uint16_t trailing_size = 0;             // of the fields after it, bytes
    std::uint64_t sample_period = 0;
  };
  // A sample, and the key of its group.
  struct KeyedSample {
    const BatchRecord* item = nullptr;
    std::uint64_t number = 0;
    std::uint64_t ip = 0, period = 0, time = 0;
    std::optional<Chain> chain;
    std::uint64_t key_low = 0, key_high = 0, key_hash = 0;
    ThreadKeyId thread{};
    std::uint8_t cpumode = 0;
    bool location_is_first_frame = false, is_payload = false;
  };
  // A key and its group. Keys are digests of chains, or addresses in a version of an address space.
  struct KeyedGroup {
    std::uint64_t key_low = 0, key_high = 0;
    ThreadKeyId thread{};
    LaneGroupId group{};
  };
  // A group's identity if addresses are merged by name: then groups have many keys.
  struct Group {
    std::span<const LocationId> frames;
    LocationId location = kNo<LocationId>;
    ThreadKeyId thread{};
    bool has_stack = false, is_payload = false;
  };
  void make_location_table();
  void trim_caches();
  static Layout layout_of(const format::EventAttr& attr, std::endian order);
  bool read(const BatchRecord& item, KeyedSample& sample);
  bool read_fast(const BatchRecord& item, const Layout& layout, KeyedSample& sample);
  void compute_key(KeyedSample& sample);
  ThreadKeyId thread_key_of(const BatchRecord& item);
  void add(const KeyedSample& sample);
  void count(const KeyedSample& sample);
  LocationId sample_location(const KeyedSample& sample);
  LaneGroupId group_of(const KeyedSample& sample);
  LaneGroupId make_group(const KeyedSample& sample, const Group& group);

  SampleLane* lane_;
  const SampleOptions* options_;
  const FunctionMerging* merging_;
  SumShape shape_;
  std::vector<Layout> layouts_;  // by event
  std::optional<LocationTable> location_table_;
  ChainReader chains_;
  std::uint64_t location_factor_ = format::random_word() | 1, thread_factor_ = format::random_word() | 1,
                factor_ = format::random_word() | 1;
  IndexTable<KeyId> by_key_;
  IndexTable<ThreadKeyId> by_thread_key_;
  IndexTable<LaneGroupId> by_group_;
  StableArray<KeyedGroup, KeyId> keyed_groups_;
  StableArray<Sum, LaneGroupId> sums_;
  StableArray<Group, LaneGroupId> groups_;  // if addresses are merged by name
  ListStore<LocationId> frames_;            // of groups_
  std::vector<LocationId> location_;        // scratch
  IdVector<ThreadKeyId, ThreadKey> thread_keys_;
  NewGroups new_;
  SumTotals totals_;
};

class SumJoin {
 public:
  // All must outlive it. `symbols` is locked while the view looks up names (FunctionMerging::mutex); null:
  // the lanes look up none.
  SumJoin(std::span<const std::unique_ptr<SumLane>> lanes, LocationTable& location_table, StackTable& stacks,
          SumView& view, std::mutex* symbols);
  // Takes the new groups of the lanes, which are stopped. If their tables are large, gives their sums to the
  // view and empties them.
  void collect();
  // Gives the groups to the view, also while lanes work.
  void add_groups();
  // After the last batch.
  void end();

 private:
  struct LaneState {
    SumLane* lane = nullptr;
    SumLane::NewGroups added;
    IdMap<LocationId, LocationId> locations{kNo<LocationId>};  // the session's, by the lane's
    IdVector<LaneGroupId, RowId> rows;                         // the view's
  };
  void take_new_groups();
  void flush_if_large();
  void add_group(LaneState& state, const SumLane::NewGroup& group);
  LocationId location_of(LaneState& state, LocationId of_lane);
  LocationId sample_location(LaneState& state, LocationId of_lane);
  void flush(LaneState& state);

  std::vector<LaneState> lanes_;
  LocationTable* location_table_;
  StackTable* stacks_;
  SumView* view_;
  std::mutex* symbols_;
  SumShape shape_;
  std::vector<LocationId> frames_;  // scratch
};

}  // namespace tacho::report
