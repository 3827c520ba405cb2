#include "report/profile/thread_stacks.h"

#include <utility>

#include "cli/message_text.h"
#include "report/profile/wait_chains.h"
#include "report/profile/wall_times.h"

namespace tacho::report {

namespace {

// A stack of a thread that waits or runs, with the threads that woke it.
class ThreadStack {
 public:
  ThreadStack(const StackSource& source, StackNames& names)
      : source_(&source), names_(&names), code_(&names.code_below("")) {}

  void begin(std::string_view comm, std::uint32_t pid, std::uint32_t tid) {
    stack_.clear();
    for (const RootFrame& root : source_->roots)
      add(root.kind == RootKind::Comm ? names_->thread_name(comm, pid, tid)
                                      : root_text(root.kind, pid, tid, comm),
          FrameKind::Group);
  }
  void add(std::string_view text, FrameKind kind) { stack_.push_back(names_->number_of(text, kind)); }
  void add_code(std::span<const LocationId> locations) {
    code_->append(locations, FrameNames::Order::RootFirst, stack_);
  }
  // Leaf first, so that the function that woke is next to the one that was woken.
  void add_waker(std::span<const LocationId> locations) {
    const std::size_t begin = stack_.size();
    code_->append(locations, FrameNames::Order::LeafFirst, stack_);
    names_->make_wakers(std::span(stack_).subspan(begin));
  }
  std::span<const std::uint32_t> names() const { return stack_; }

 private:
  const StackSource* source_;
  StackNames* names_;
  FrameNames* code_;
  std::vector<std::uint32_t> stack_;
};

class WaitSink : public Sink {
 public:
  WaitSink(Session& session, const StackSource& source, const WaitOptions& options, StackNames& names,
           const TakeWait& take)
      : waits_(session, options), names_(&names), stack_(source, names), take_(&take) {}

  Waits& waits() { return waits_; }
  bool has_any() const { return has_any_; }
  bool takes_non_samples() const override { return false; }
  Flow on_sample(const ResolvedSample& sample) override {
    if (const auto wait = waits_.take_sample(sample)) add(*wait);
    return Flow::Continue;
  }

 private:
  void add(const Wait& wait) {
    has_any_ = true;
    stack_.begin(wait.comm, wait.pid, wait.tid);
    stack_.add_code(wait.stack->frames);
    for (const Waker& waker : wait.wakers) {
      stack_.add(kWakerMark, FrameKind::Mark);
      if (waker.stack != nullptr) stack_.add_waker(waker.stack->frames.first(waker.frames));
      stack_.add(waker.is_interrupt ? std::string(waker.comm)
                                    : names_->thread_name(waker.comm, waker.pid, waker.tid),
                 FrameKind::Waker);
    }
    if (!(*take_)(stack_.names(), wait.weight)) waits_.leave_wakers_out();
  }

  Waits waits_;
  StackNames* names_;
  ThreadStack stack_;
  const TakeWait* take_;
  bool has_any_ = false;
};

struct WallSink : Sink {
  WallSink(Session& session, const WaitOptions& options) : times(session, options) {}
  Flow on_sample(const ResolvedSample& sample) override {
    times.take(sample);
    return Flow::Continue;
  }
  Flow on_non_sample(const NonSampleRecord& event) override {
    times.take(event);
    return Flow::Continue;
  }
  WallTimes times;
};

FrameKind kind_of(WallState state) {
  switch (state) {
    case WallState::OnCpu:
      return FrameKind::OnCpu;
    case WallState::Runnable:
      return FrameKind::Runnable;
    case WallState::Unknown:
      return FrameKind::Group;
    default:
      return FrameKind::Waiting;
  }
}

// Adds the frames of the wait, root first, then a mark and the frames of the waker, leaf first.
void add_chain(const WaitChains& chains, const Stack& chain, ThreadStack& stack) {
  const auto marks = chains.names_of(chain);
  bool is_waker = false;
  for (std::size_t i = chain.frames.size(); i-- > 0;) {
    const auto frame = chain.frames.subspan(i, 1);
    if (marks[i] == kNo<WaitNameId>) {
      is_waker ? stack.add_waker(frame) : stack.add_code(frame);
      continue;
    }
    const std::string_view name = chains.name(marks[i]);
    is_waker = true;  // from the first mark on
    stack.add(name, name == kWakerMark ? FrameKind::Mark : FrameKind::Waker);
  }
}

}  // namespace

Result<TimeFacts> read_waits(Session& session, const StackSource& source, StackNames& names,
                             const RunSession& run, const TakeWait& take) {
  WaitOptions wanted = source.waits;
  wanted.who.condition = std::exchange(session.filter().condition, nullptr);
  WaitSink sink(session, source, wanted, names, take);
  if (auto found = sink.waits().find_events(); !found) return std::move(found.error());
  if (sink.waits().has_switches() && session.filter().looks_at_names())
    return use_error(
        "--off-cpu: every sample of sched:sched_switch is taken in the scheduler, so functions do not select "
        "waits; leave --dsos, --symbols and --symbol-filter out");
  run(sink);
  return TimeFacts{"waits", sink.waits().notes(), sink.has_any()};
}

Result<TimeFacts> read_times(Session& session, const StackSource& source, StackNames& names,
                             const RunSession& run, const TakeTime& take) {
  WallSink sink(session, source.waits);
  WallTimes& times = sink.times;
  if (auto found = times.find_events(); !found) return std::move(found.error());
  run(sink);
  times.finish();
  ThreadStack stack(source, names);
  for (const WallRow& row : times.rows()) {
    const WallThread& thread = times.threads()[row.thread];
    stack.begin(thread.comm, thread.pid, thread.tid);
    stack.add(name_of(row.state), kind_of(row.state));
    if (row.stack != nullptr) add_chain(times.chains(), *row.stack, stack);
    take(stack.names(), row.time);
  }
  const std::size_t threads = times.threads().size();
  return TimeFacts{"the time of " + cli::counted(threads, "thread"), times.notes(), !times.rows().empty()};
}

}  // namespace tacho::report
