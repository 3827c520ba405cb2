#include "report/views/folded/folded_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "report/perf_text/frame_text.h"

namespace tacho::report {
namespace {

constexpr Fields kLineFields{Field::Ip, Field::Sym, Field::Symoff, Field::Dso};

class WaitSink : public Sink {
 public:
  WaitSink(Session& session, const WaitOptions& options, const FoldOptions& fold, Names names)
      : session_(&session),
        fold_(fold),
        waits_(session, options),
        folded_(names),
        marker_(folded_.name(kWakerMark)),
        interrupt_(folded_.name(kInterruptMark)) {}

  Waits& waits() { return waits_; }
  const FoldedStacks& folded() const { return folded_; }
  Needs needs() const override { return Needs::Names; }

  Flow on_sample(const ResolvedSample& sample) override {
    if (const auto wait = waits_.take(sample)) add(*wait);
    return Flow::GoOn;
  }

 private:
  using Frames = std::vector<std::uint32_t>;  // names
  struct Place {
    Frames names;  // outermost first
    bool is_named = false;
  };

  void add(const Wait& wait) {
    stack_.assign(1, name_of_thread(wait.comm, wait.pid, wait.tid));
    const auto frames = wait.stack->frames;
    // Leaf first, as perf asks: what some inlined functions are called depends on who was asked for before.
    for (const std::uint32_t location : frames) names_of(location);
    for (auto location = frames.rbegin(); location != frames.rend(); ++location) {
      const Frames& names = names_of(*location);
      stack_.insert(stack_.end(), names.begin(), names.end());
    }
    for (const Waker& waker : wait.wakers) add(waker);
    folded_.add(folded_.row_of(stack_), wait.duration);
  }
  // The other way round: what woke stands next to what was woken, and its thread's name at the end.
  void add(const Waker& waker) {
    stack_.push_back(marker_);
    for (std::size_t i = 0; i < waker.frames; ++i) {
      const Frames& names = names_of(waker.stack->frames[i]);
      stack_.insert(stack_.end(), names.rbegin(), names.rend());
    }
    stack_.push_back(waker.is_interrupt ? interrupt_ : name_of_thread(waker.comm, waker.pid, waker.tid));
  }

  std::uint32_t name_of_thread(std::string_view comm, std::uint32_t pid, std::uint32_t tid) {
    std::string name(comm);
    std::ranges::replace(name, ' ', '_');
    if (fold_.shows_tid) {
      name += fmt::format("-{}/{}", static_cast<std::int32_t>(pid), static_cast<std::int32_t>(tid));
    } else if (fold_.shows_pid) {
      name += fmt::format("-{}", static_cast<std::int32_t>(pid));
    }
    return folded_.name(name);
  }

  const Frames& names_of(std::uint32_t location) {
    Place& place = places_[location];
    if (place.is_named) return place.names;
    place.is_named = true;
    const auto frames = session_->resolver().frames(session_->resolver().location(location));
    for (const symbolize::Frame& frame : frames) {
      TextBuffer line;
      write_frame(line, frame, kLineFields, Names::Raw);
      Frames names;
      for (const std::string& name : fold_frame(line.view(), fold_, false))
        names.push_back(folded_.name(name));
      place.names.insert(place.names.begin(), names.begin(), names.end());
    }
    return place.names;
  }

  Session* session_;
  FoldOptions fold_;
  Waits waits_;
  FoldedStacks folded_;
  std::uint32_t marker_, interrupt_;  // names
  ByNumber<Place> places_;
  Frames stack_;  // of the wait at hand
};

}  // namespace

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
