// Parallel sums: samples are grouped by event, thread, place and stack on several threads. The view gets each
// group once, in the order of the groups' first samples, and each group's sums at the end. So its cost
// follows the number of groups, and its output is the same for any number of threads.
//
//   SumLane   a worker's tables: sums by group. Where places have names, it looks these up, so that few
//   groups
//             are left to merge
//   SumJoin   merges the lanes on one thread: interns places and stacks in the session, and gives groups to
//   the view
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
#include "report/samples/by_number.h"
#include "report/samples/index_table.h"
#include "report/samples/place_table.h"
#include "report/samples/sample_lane.h"
#include "report/samples/sink.h"
#include "report/samples/stable_array.h"
#include "report/samples/stack_table.h"

namespace tacho::report {

// By which properties samples are grouped, besides the event.
struct SumShape {
  bool by_stack = true;
  bool by_place = true;  // the sample's own; without a stack it always does
  bool by_comm = true;
  bool by_thread = false;
  bool needs_stack = false;    // samples without a call chain are left out
  bool counts_nought = false;  // a sample with period 0 counts as 1
  // How places are distinguished (Sink::Places). With Addresses there are as many groups as distinct stacks;
  // otherwise they are few, and memory is bounded.
  Sink::Places places = Sink::Places::Addresses;
};

// A group, described by its first sample.
struct SumRow {
  std::size_t event = 0;
  const Thread* thread = nullptr;
  std::string_view comm;
  std::uint32_t place = 0;       // number of its location; 0 where places are not told apart
  const Stack* stack = nullptr;  // null: there is no call chain
  bool has_payload_stack = false;
};

// A group as a sample, with the fields that all samples of the group share: pid, tid, event, thread, comm and
// stack.
class SumSample {
 public:
  // `row` and `events` must outlive it.
  SumSample(const SumRow& row, const format::EventSet& events);
  SumSample(const SumSample&) = delete;
  SumSample& operator=(const SumSample&) = delete;
  const ResolvedSample& get() const { return sample_; }

 private:
  format::Sample raw_;
  ResolvedSample sample_;
};

class SumView {
 public:
  virtual ~SumView() = default;
  virtual SumShape shape() const = 0;
  // The view's row of a group. Several groups may share a row, and a group may be given again.
  virtual std::uint32_t row_of(const SumRow& row) = 0;
  virtual void count(std::uint32_t row, std::size_t event, std::uint64_t period, std::uint64_t samples) = 0;
  // `samples`: number of all samples, also of those without a group.
  virtual void end(std::uint64_t /*samples*/) {}
};

// Belongs to one thread at a time.
class SumLane {
 public:
  // All must outlive it; `lane` is its own. `names`: what distinguishes places, unless by their addresses.
  SumLane(SampleLane& lane, const symbolize::SymbolOptions& symbols, const SampleOptions& options,
          const SumShape& shape, const NamesOf& names);

  // Samples in their order, and behind those of earlier calls. `first`: the number of the first one.
  void add(std::span<const BatchItem> items, std::uint64_t first);

  // A group that is new since take_fresh(). Places are numbers in places().
  struct Fresh {
    std::uint64_t first = 0;  // number of its first sample
    const Thread* thread = nullptr;
    std::string_view comm;
    std::uint32_t event = 0;
    std::uint32_t place = IndexTable::kNone;     // its own
    std::uint32_t frames_begin = 0, frames = 0;  // in FreshRows::frames
    bool has_stack = false, is_payload = false;
  };
  struct FreshRows {
    std::vector<Fresh> rows;
    std::vector<std::uint32_t> frames;
  };
  // Moves the new groups to `rows`, in the order of their first samples; later ones go into the memory of
  // `rows`.
  void take_fresh(FreshRows& rows);
  const StableArray<Location>& places() const { return places_->locations(); }

  // A group's sums.
  struct Sum {
    std::uint64_t period = 0, samples = 0;
    std::uint32_t event = 0;
  };
  std::size_t size() const { return sums_.size(); }
  const Sum& operator[](std::size_t group) const { return sums_[group]; }
  std::uint64_t samples() const { return samples_; }
  // Empties the tables: groups that come again are new, and places get new numbers.
  void forget();

 private:
  // The part of a group's key besides place and chain.
  struct Who {
    const Thread* thread = nullptr;
    const char* comm = nullptr;
    std::uint32_t event = 0;
    bool operator==(const Who&) const = default;
  };
  // Offsets of fields in an event's samples, for events whose samples have fixed-size fields and at most a
  // call chain.
  struct Layout {
    bool is_plain = false, has_chain = false;
    std::uint16_t ip = 0, period = 0, fixed = 0;  // bytes from the record's begin; 0: there is none
    std::uint64_t sample_period = 0;
  };
  struct Work {
    const BatchItem* item = nullptr;
    std::uint64_t number = 0;
    std::uint64_t ip = 0, period = 0;
    std::optional<Chain> chain;
    std::uint64_t low = 0, high = 0, hash = 0;
    std::uint32_t who = 0;
    std::uint8_t cpumode = 0;
    bool is_first = false, is_payload = false;
  };
  // Key of a sample's group: digest of its chain or address in a version of the address space.
  struct Known {
    std::uint64_t low = 0, high = 0;
    std::uint32_t who = 0;
    std::uint32_t group = 0;
  };
  // Identity of a group where frames are merged by function: many chains of addresses are one group.
  struct Group {
    std::span<const std::uint32_t> frames;
    std::uint32_t place = IndexTable::kNone;
    std::uint32_t who = 0;
    bool has_stack = false, is_payload = false;
  };
  void make_places();
  void bound_keys();
  static Layout layout_of(const format::EventAttr& attr, std::endian order);
  bool read(const BatchItem& item, Work& work);
  bool read_plain(const BatchItem& item, const Layout& layout, Work& work);
  void find_key(Work& work);
  std::uint32_t who_of(const BatchItem& item);
  void add_together(std::size_t count);
  void add_one(const Work& work);
  std::uint32_t own_place(const Work& work);
  std::uint32_t group_of(const Work& work);
  std::uint32_t make(const Work& work, const Group& group);

  SampleLane* lane_;
  const SampleOptions* options_;
  const NamesOf* names_;
  SumShape shape_;
  std::vector<Layout> layouts_;  // by event
  std::optional<PlaceTable> places_;
  ChainReader chains_;
  std::uint64_t place_factor_ = format::random_word() | 1, who_factor_ = format::random_word() | 1,
                factor_ = format::random_word() | 1;
  IndexTable by_key_, by_who_, by_group_;
  StableArray<Known> known_;
  StableArray<Sum> sums_;             // by group
  StableArray<Group> groups_;         // likewise, where places have names
  FrameStore frames_;                 // of groups_
  std::vector<std::uint32_t> place_;  // scratch
  std::vector<Who> whos_;
  struct Recent {
    Who who;
    std::uint32_t number = IndexTable::kNone;
  };
  std::array<Recent, 64> recent_{};
  FreshRows fresh_;
  std::uint64_t samples_ = 0;
  static constexpr std::size_t kTogether = 64;  // samples
  std::array<Work, kTogether> work_;
};

class SumJoin {
 public:
  // All must outlive it. `naming` is locked while the view asks for names (NamesOf).
  SumJoin(std::span<const std::unique_ptr<SumLane>> lanes, PlaceTable& places, StackTable& stacks,
          SumView& view, std::mutex& naming);
  // Between two batches: takes new groups from the lanes. add_rows() then gives them to the view while lanes
  // work.
  void take_fresh();
  void add_rows();
  // Between two batches, after take_fresh(): if the lanes' tables are large, gives their sums to the view and
  // empties them.
  void bound();
  void end();

 private:
  struct Of {
    SumLane* lane = nullptr;
    SumLane::FreshRows fresh;
    ByNumber<std::uint32_t> places{IndexTable::kNone};  // of the session, by number of the lane's
    std::vector<std::uint32_t> rows;                    // of the view, by group
  };
  void add_row(Of& of, const SumLane::Fresh& row);
  void fetch(const Of& of, const SumLane::Fresh& row) const;
  std::uint32_t place_of(Of& of, std::uint32_t number);
  std::uint32_t own_place(Of& of, std::uint32_t number);
  void count(Of& of);

  std::vector<Of> lanes_;
  PlaceTable* places_;
  StackTable* stacks_;
  SumView* view_;
  std::mutex* naming_;
  SumShape shape_;
  std::vector<std::uint32_t> frames_;  // scratch
};

}  // namespace tacho::report
