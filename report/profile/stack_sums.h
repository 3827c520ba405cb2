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
#include "report/profile/profile.h"
#include "report/profile/root_fields.h"
#include "report/profile/slow_intervals.h"
#include "report/profile/stack_events.h"
#include "report/profile/stack_names.h"
#include "report/profile/weight_unit.h"
#include "report/query/root_frames.h"
#include "report/samples/session.h"
#include "report/samples/sum_view.h"
#include "report/samples/tables.h"

namespace tacho::report {

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

}  // namespace tacho::report
