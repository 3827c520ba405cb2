#include "report/views/folded/folded_waits.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "report/profile/wall_times.h"
#include "report/views/folded/folded_names.h"

namespace tacho::report {
namespace {

class WaitSink : public Sink {
 public:
  WaitSink(Session& session, const WaitOptions& options, const FoldOptions& fold, Names names)
      : fold_(fold),
        waits_(session, options),
        folded_(names),
        names_(folded_frame_names(session, folded_, fold, {})),
        marker_(folded_.name(kWakerMark)) {}

  Waits& waits() { return waits_; }
  const FoldedStacks& folded() const { return folded_; }
  Needs needs() const override { return Needs::Names; }

  Flow on_sample(const ResolvedSample& sample) override {
    if (const auto wait = waits_.take(sample)) add(*wait);
    return Flow::GoOn;
  }

 private:
  void add(const Wait& wait) {
    stack_.assign(1, name_of_thread(wait.comm, wait.pid, wait.tid));
    names_.append(wait.stack->frames, FrameNames::Order::RootFirst, false, stack_);
    for (const Waker& waker : wait.wakers) add(waker);
    folded_.add(folded_.row_of(stack_), wait.duration);
    if (folded_.bytes() > kMostChainBytes) waits_.leave_wakers_out();
  }
  // The other way round: what woke stands next to what was woken, and its thread's name at the end.
  void add(const Waker& waker) {
    stack_.push_back(marker_);
    if (waker.stack != nullptr)
      names_.append(waker.stack->frames.first(waker.frames), FrameNames::Order::LeafFirst, false, stack_);
    stack_.push_back(waker.is_interrupt ? folded_.name(waker.comm)
                                        : name_of_thread(waker.comm, waker.pid, waker.tid));
  }

  std::uint32_t name_of_thread(std::string_view comm, std::uint32_t pid, std::uint32_t tid) {
    std::string name(comm);
    std::ranges::replace(name, ' ', '_');
    return folded_.name(name + thread_part(fold_, pid, tid));
  }

  FoldOptions fold_;
  Waits waits_;
  FoldedStacks folded_;
  FrameNames names_;
  std::uint32_t marker_;              // a name
  std::vector<std::uint32_t> stack_;  // names, of the wait at hand
};

// The times of threads, below their state.
class WallSink : public Sink {
 public:
  WallSink(Session& session, const WaitOptions& options, const FoldOptions& fold, Names names)
      : fold_(fold),
        times_(session, options),
        folded_(names),
        names_(folded_frame_names(session, folded_, fold, {})) {}

  WallTimes& times() { return times_; }
  Flow on_sample(const ResolvedSample& sample) override {
    times_.take(sample);
    return Flow::GoOn;
  }
  Flow on_other(const OtherEvent& event) override {
    times_.take(event);
    return Flow::GoOn;
  }

  const FoldedStacks& folded() {
    std::vector<std::uint32_t> stack;
    for (const WallRow& row : times_.rows()) {
      const WallThread& thread = times_.threads()[row.thread];
      std::string name(thread.comm.empty() ? "[unnamed]" : thread.comm);
      std::ranges::replace(name, ' ', '_');
      stack.assign(1, folded_.name(name + thread_part(fold_, thread.pid, thread.tid)));
      stack.push_back(folded_.name(name_of(row.state)));
      if (row.stack != nullptr) append(*row.stack, stack);
      folded_.add(folded_.row_of(stack), static_cast<std::uint64_t>(std::llround(row.time)));
    }
    return folded_;
  }

 private:
  void append(const Stack& chain, std::vector<std::uint32_t>& stack) {
    const auto marks = times_.chains().names_of(chain);
    bool is_waker = false;
    for (std::size_t i = chain.frames.size(); i-- > 0;) {
      if (marks[i] == WaitChains::kPlace) {
        names_.append(chain.frames.subspan(i, 1),
                      is_waker ? FrameNames::Order::LeafFirst : FrameNames::Order::RootFirst, false, stack);
        continue;
      }
      std::string name(times_.chains().name(marks[i]));
      is_waker = true;
      if (name != kWakerMark) std::ranges::replace(name, ' ', '_');
      stack.push_back(folded_.name(name));
    }
  }

  FoldOptions fold_;
  WallTimes times_;
  FoldedStacks folded_;
  FrameNames names_;
};

}  // namespace

Result<Shown> show_wall(Session& session, TextOutput& out, const WaitOptions& options,
                        const FoldOptions& fold, Names names) {
  read_head(session);
  WallSink sink(session, options, fold, names);
  if (auto found = sink.times().find_events(); !found) return std::move(found.error());
  run_with_progress(session, sink, out);
  sink.times().finish();
  sink.folded().write(out);
  Shown shown(Symbols::Used);
  for (const std::string& note : sink.times().notes()) shown.notes.push_back("tacho folded: " + note);
  return shown;
}

Result<Shown> show_waits(Session& session, TextOutput& out, const WaitOptions& options,
                         const FoldOptions& fold, Names names) {
  WaitOptions wanted = options;
  wanted.who.condition = std::exchange(session.filter().condition, nullptr);
  read_head(session);
  WaitSink sink(session, wanted, fold, names);
  if (auto found = sink.waits().find_events(); !found) return std::move(found.error());
  if (sink.waits().has_switches() && session.filter().looks_at_names())
    return use_error(
        "--off-cpu: of sched:sched_switch every sample is taken in the scheduler, whatever waits; leave "
        "--dsos, --symbols and --symbol-filter out");
  run_with_progress(session, sink, out);
  sink.folded().write(out);
  Shown shown(Symbols::Used);
  for (const std::string& note : sink.waits().notes()) shown.notes.push_back("tacho folded: " + note);
  return shown;
}

}  // namespace tacho::report
