#include "report/profile/stack_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/message_text.h"
#include "report/profile/wall_times.h"

namespace tacho::report {

std::optional<std::string> StackNames::thread_name(const ResolvedSample& sample,
                                                   std::string_view /*event*/) const {
  return thread_name(sample.comm, sample.pid(), sample.tid());
}

StackSums::StackSums(Session& session, const StackSource& source, const Choice& choice, StackNames& names,
                     NamedStacks& stacks)
    : session_(&session),
      source_(&source),
      choice_(choice),
      names_(&names),
      stacks_(&stacks),
      events_(session, source.event, source.weight, choice.as_perl),
      fields_(session),
      merge_by_(stack_merge_by(session, source.expands_inlines || choice.shows_more)),
      tells_threads_(choice.as_perl || choice.tells_threads || has_root(RootKind::Pid) ||
                     has_root(RootKind::Tid)),
      is_of_threads_(!has_root(RootKind::Cpu) && !has_root(RootKind::Cgroup) && !has_root(RootKind::Field)),
      profile_({EventBlock{}}, ProfileShape{.by_comm = false}) {}

Result<> StackSums::read(const RunSession& run) {
  if (source_->slow.is_asked_for()) {
    auto found = SlowIntervals::find(*session_, source_->slow);
    if (!found) return std::move(found.error());
    slow_ = std::move(*found);
  }
  run(*this);
  if (auto sound = events_.check(); !sound) return sound;
  if (auto sound = fields_.check("--by", source_->roots); !sound) return sound;
  name_new_rows();
  if (!slow_) return Done{};
  sides_.resize(of_rows_.size());
  slow_->split([this](RowId row, SlowIntervals::Side side, std::uint64_t weight) {
    (side == SlowIntervals::Side::Slow ? sides_[row].slow : sides_[row].other) += weight;
  });
  return Done{};
}

bool StackSums::has_several_events() const {
  return std::ranges::any_of(roots_,
                             [this](const Roots& roots) { return roots.names[0] != roots_[0].names[0]; });
}

void StackSums::each(const std::function<void(const Sum&)>& take) const {
  for (const RowId row : of_rows_.ids()) {
    const Sides sides = slow_ ? sides_[row] : Sides{profile_.rows()[row].only.period, 0};
    if (sides.slow != 0 || sides.other != 0)
      take({of_rows_[row], roots_of(row).event, sides.slow, sides.other});
  }
}

std::vector<std::string> StackSums::notes(StackEvents::Several several_are) {
  std::vector<std::string> notes = events_.notes(of_rows_.size() > 0 || !has_samples_, several_are);
  if (slow_) std::ranges::copy(slow_->notes(), std::back_inserter(notes));
  return notes;
}

// Only periods and sample counts are added up by several threads; weights in fields are read by one. In a
// pipe, the fields of payloads may come late.
SumView* StackSums::sum_view() {
  const bool sees_periods =
      choice_.periods != nullptr &&
      (session_->layout().is_pipe || choice_.periods->reads_payloads(session_->events().size()));
  const bool is_serial =
      choice_.as_perl || slow_ || !is_of_threads_ || sees_periods || events_.reads_fields();
  return is_serial ? nullptr : this;
}

Sink::Flow StackSums::on_sample(const ResolvedSample& sample) {
  has_samples_ = true;
  if (slow_ && slow_->take(sample)) return Flow::Continue;
  if (sample.stack == nullptr || !events_.takes(sample)) return Flow::Continue;
  const auto weight = events_.weight_of(sample);
  if (!weight) return Flow::Continue;
  if (choice_.periods != nullptr) choice_.periods->see(sample);
  const RowId row = row_of(sample);
  if (row == kNo<RowId>) return Flow::Continue;
  profile_.count(row, 0, {.period = *weight, .samples = 1});
  if (slow_) slow_->see(sample, row, *weight);
  return Flow::Continue;
}

SumShape StackSums::shape() const {
  SumShape shape;
  shape.by_location = false;
  shape.by_thread = tells_threads_;
  shape.needs_stack = true;
  shape.zero_periods = SumShape::ZeroPeriods::Count;
  shape.merge_by = merge_by_;
  return shape;
}

RowId StackSums::row_of(const SumGroup& group) {
  const SumSample sample(group, session_->events());
  return events_.takes(sample.get()) ? row_of(sample.get()) : kNo<RowId>;
}

void StackSums::count(RowId row, std::size_t, std::uint64_t period, std::uint64_t samples) {
  if (row == kNo<RowId>) return;
  profile_.count(row, 0, {.period = events_.counts_samples() ? samples : period, .samples = samples});
}

RowId StackSums::row_of(const ResolvedSample& sample) {
  const RootsId roots = roots_of(sample);
  if (roots == kNo<RootsId>) return kNo<RowId>;
  const RowId row =
      profile_.row_for(LateSample{.facts = id_of<FactsId>(value_of(roots)), .stack = sample.stack});
  if (merge_by_ == MergeBy::Address) name_new_rows();  // at once, while other threads read on
  return row;
}

StackSums::RootsId StackSums::roots_of(const ResolvedSample& sample) {
  if (!is_of_threads_) return make_roots(sample);
  const ThreadKey key{sample.comm.data(), tells_threads_ ? sample.pid() : 0,
                      tells_threads_ ? sample.tid() : 0, sample.event_index};
  const std::uint64_t hash =
      by_thread_.hash(reinterpret_cast<std::uintptr_t>(key.comm), key.pid, key.tid, key.event);
  const std::uint32_t known =
      by_thread_.find(hash, [&](std::uint32_t thread) { return of_threads_[thread].key == key; });
  if (known != kNo<std::uint32_t>) return of_threads_[known].roots;
  const RootsId roots = make_roots(sample);
  if (names_->has_fixed_name(sample))
    (void)find_or_add(by_thread_, hash, of_threads_, [](const RootsOfThread&) { return false; },
                      {key, roots});
  return roots;
}

StackSums::RootsId StackSums::make_roots(const ResolvedSample& sample) {
  const std::string& event = events_.name_of(sample);
  std::string key = fmt::format("{}", sample.event_index);
  std::vector<std::string> texts;
  for (const RootFrame& root : source_->roots) {
    auto text = root.kind == RootKind::Comm    ? names_->thread_name(sample, event)
                : root.kind == RootKind::Field ? std::optional(fields_.text(root.field, sample))
                                               : std::optional(root_text(root.kind, sample, event));
    if (!text) return kNo<RootsId>;
    (key += '\0') += *text;
    texts.push_back(std::move(*text));
  }
  const auto [known, is_new] = by_text_.try_emplace(std::move(key), id_of<RootsId>(roots_.size()));
  if (!is_new) return known->second;
  const bool has_no_event = choice_.as_perl || has_root(RootKind::Event);
  Roots& roots = roots_.emplace_back();
  roots.event = sample.event_index;
  roots.names.push_back(names_->number_of(has_no_event ? "" : event, FrameKind::Group));
  for (const std::string& text : texts) roots.names.push_back(names_->number_of(text, FrameKind::Group));
  roots.code = &names_->code_below(texts.empty() ? "" : texts.front());
  return known->second;
}

void StackSums::name_new_rows() {
  while (of_rows_.size() < profile_.rows().size()) {
    const auto row = id_of<RowId>(of_rows_.size());
    const Roots& roots = roots_of(row);
    stack_ = roots.names;
    roots.code->append(profile_.stack_of(row)->frames, FrameNames::Order::RootFirst, stack_);
    of_rows_.push_back(stacks_->id_of(stack_));
  }
}

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
    if (const auto wait = waits_.take(sample)) add(*wait);
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
