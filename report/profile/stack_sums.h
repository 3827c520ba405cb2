// Stacks of a picture (folded stacks, a flame graph) with their sums: of samples, of waits, or of all the
// time of threads. A stack is a list of numbers, which the picture gives to its names: root frames, then
// code.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "format/base/result.h"
#include "report/profile/function_table.h"
#include "report/profile/profile.h"
#include "report/profile/root_fields.h"
#include "report/profile/slow_intervals.h"
#include "report/profile/weight.h"
#include "report/query/root_frames.h"
#include "report/query/waits.h"
#include "report/samples/session.h"
#include "report/samples/sums.h"
#include "report/samples/tables.h"

namespace tacho::report {

// The stacks that a user asks for.
struct StackSource {
  std::vector<RootFrame> roots{RootFrame{}};  // by name of thread
  std::string event, weight;                  // see StackEvents
  WaitOptions waits;
  SlowQuestion slow;
  bool is_wall = false;          // the time of threads, on the CPU and off it
  bool expands_inlines = false;  // inlined calls of every stack are shown

  bool is_of_times() const { return is_wall || waits.is_asked_for; }  // not of samples
};

// The names of a picture.
class StackNames {
 public:
  virtual ~StackNames() = default;
  // The number of a name that is no code.
  virtual std::uint32_t number_of(std::string_view text, FrameKind kind) = 0;
  // The names of code in stacks whose first root frame, below the event, has this text.
  virtual FrameNames& code_below(std::string_view root) = 0;
  // Names of code become names of a waker's code.
  virtual void make_wakers(std::span<std::uint32_t> /*code*/) {}

  virtual std::string thread_name(std::string_view comm, std::uint32_t /*pid*/, std::uint32_t /*tid*/) const {
    return std::string(comm);
  }
  // The same for a sample; nullopt: it is left out. `event`: its name.
  virtual std::optional<std::string> thread_name(const ResolvedSample& sample, std::string_view event) const;
  // Whether all samples of a thread with one name have one thread_name(), and none of them is left out.
  virtual bool has_fixed_name(const ResolvedSample& /*sample*/) const { return true; }
};

// Distinct stacks: the numbers of their names, root first.
using NamedStacks = DistinctLists<NamedStackId, std::uint32_t>;

// Reads all samples of a session into a sink, as Session::run() does, with or without a progress line.
using RunSession = std::function<void(Sink&)>;

// Adds up samples by root frames and stack.
class StackSums : public Sink, private SumView {
 public:
  struct Choice {
    bool as_perl = false;             // see StackEvents
    bool shows_more = false;          // see stack_merge_by()
    bool tells_threads = false;       // StackNames::thread_name() depends on pid or tid
    PeriodFields* periods = nullptr;  // sees the samples; null: the units of weights are not asked for
  };
  // All must outlive this. `names` are those of `stacks`.
  StackSums(Session& session, const StackSource& source, const Choice& choice, StackNames& names,
            NamedStacks& stacks);

  // To be called once the session's events are known.
  Result<> read(const RunSession& run);

  // Then:
  struct Roots {
    std::size_t event = 0;             // of the session
    std::vector<std::uint32_t> names;  // the first is the event's name, also if it is not shown
    FrameNames* code = nullptr;
  };
  const std::deque<Roots>& roots() const { return roots_; }  // those of all rows
  // Whether stacks of several events differ by their first name. Never if the event is a root frame.
  bool has_several_events() const;
  // Calls `take` once or more for each stack with its weight; `other` is outside of slow intervals.
  struct Sum {
    NamedStackId stack{};
    std::size_t event = 0;  // of the session
    std::uint64_t weight = 0, other = 0;
  };
  void each(const std::function<void(const Sum&)>& take) const;

  bool has_samples() const { return has_samples_; }
  std::vector<std::string> notes(StackEvents::Several several_are = StackEvents::Several::Together);
  const std::optional<SlowIntervals>& slow() const { return slow_; }

  // Sink:
  bool takes_non_samples() const override { return false; }
  MergeBy merge_by() const override { return merge_by_; }
  SumView* sum_view() override;
  Flow on_sample(const ResolvedSample& sample) override;

 private:
  SumShape shape() const override;
  RowId row_of(const SumGroup& group) override;
  void count(RowId row, std::size_t event, std::uint64_t period, std::uint64_t samples) override;
  void end(const SumTotals& totals) override { has_samples_ |= totals.samples > 0; }

  enum class RootsId : std::uint32_t {};  // of roots_
  // kNo: the sample is left out.
  RowId row_of(const ResolvedSample& sample);
  RootsId roots_of(const ResolvedSample& sample);
  RootsId make_roots(const ResolvedSample& sample);
  const Roots& roots_of(RowId row) const { return roots_[index_of(profile_.rows()[row].facts)]; }
  void name_new_rows();
  bool has_root(RootKind kind) const { return contains_root(source_->roots, kind); }

  // A thread with one name; pid and tid only if names of root frames have them.
  struct ThreadKey {
    const char* comm = nullptr;  // equal names share their bytes
    std::uint32_t pid = 0, tid = 0;
    std::size_t event = 0;
    bool operator==(const ThreadKey&) const = default;
  };
  struct RootsOfThread {
    ThreadKey key;
    RootsId roots{};
  };

  Session* session_;
  const StackSource* source_;
  Choice choice_;
  StackNames* names_;
  NamedStacks* stacks_;
  std::optional<SlowIntervals> slow_;
  StackEvents events_;
  RootFields fields_;
  MergeBy merge_by_;
  bool tells_threads_, has_samples_ = false;
  bool is_of_threads_;  // root frames are the same for all samples of a thread and event
  std::deque<Roots> roots_;
  std::unordered_map<std::string, RootsId> by_text_;
  IndexTable<> by_thread_;
  std::vector<RootsOfThread> of_threads_;
  Profile profile_;  // the facts of its rows are RootsIds
  struct Sides {
    std::uint64_t slow = 0, other = 0;
  };
  IdVector<RowId, Sides> sides_;           // with slow_
  IdVector<RowId, NamedStackId> of_rows_;  // the stacks of the rows that are named
  std::vector<std::uint32_t> stack_;       // scratch
};

// What waits or times of threads are, and lines about them.
struct TimeFacts {
  std::string what;
  std::vector<std::string> notes;
  bool has_any = false;
};
// Off-CPU waits of threads, each with the stacks of its wakers after a mark. `take` returns whether stacks
// may get longer: without it, the waits that follow have no wakers.
using TakeWait = std::function<bool(std::span<const std::uint32_t> stack, std::uint64_t ns)>;
Result<TimeFacts> read_waits(Session& session, const StackSource& source, StackNames& names,
                             const RunSession& run, const TakeWait& take);
// All time of threads, below their state.
using TakeTime = std::function<void(std::span<const std::uint32_t> stack, double ns)>;
Result<TimeFacts> read_times(Session& session, const StackSource& source, StackNames& names,
                             const RunSession& run, const TakeTime& take);

}  // namespace tacho::report
