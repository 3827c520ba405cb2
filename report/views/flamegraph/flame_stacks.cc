#include "report/views/flamegraph/flame_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "format/base/parse_text.h"
#include "report/output/text_output.h"
#include "report/profile/profile.h"
#include "report/profile/wall_times.h"
#include "report/profile/weight.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"
#include "report/samples/sums.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

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

// Frames of call chains as frames of a graph, by the names of folded stacks.
FrameNames flame_names(Session& session, FlameFrames& frames, FrameAddresses& addresses) {
  const auto make = [&frames, &addresses](const symbolize::Frame& frame, const FrameAddress& address,
                                          std::vector<std::uint32_t>& numbers) {
    const std::string module = frame.module == nullptr ? "" : printable(frame.module->short_name);
    const std::string_view linker = linker_name_of(frame);
    const std::string name = printable(name_of_frame(frame, {}));
    numbers.push_back(
        frames.number_of(name, module, kind_of_code(frame), linker == frame.function ? name : linker));
    addresses.keep(numbers.back(), address);
  };
  return {session, FrameNames::Of::Functions, make};
}

// A text as the name of a frame.
std::string shown(std::string_view name) { return name.empty() ? "[unnamed]" : printable(name); }

// Counts the event that costs are divided by.
class UnitCount {
 public:
  // Of an empty name: counts no event.
  static Result<UnitCount> of(Session& session, const std::string& name) {
    UnitCount units;
    if (name.empty()) return units;
    const std::vector<std::string> names = event_names(session.events());
    units.event_ = find_event(name, names);
    if (!units.event_) return not_one_event("--per", name, names);
    units.name_ = names[*units.event_];
    return units;
  }
  bool has_event() const { return event_.has_value(); }
  // Whether the sample is one of that event.
  bool takes(const ResolvedSample& sample) {
    if (!event_ || sample.event_index != *event_) return false;
    count_ += sample.period == 0 ? 1 : static_cast<double>(sample.period);
    return true;
  }
  void give(FlameFacts& facts) const {
    facts.per = name_;
    facts.units = count_;
  }

 private:
  std::optional<std::size_t> event_;
  std::string name_;
  double count_ = 0;
};

// Adds up samples by root frames and stack.
class FlameSink : public Sink, private SumView {
 public:
  FlameSink(Session& session, const FlameSource& source, UnitCount units, std::optional<SlowIntervals> slow,
            FlameFrames& frames)
      : session_(session),
        source_(source),
        units_(std::move(units)),
        slow_(std::move(slow)),
        frames_(frames),
        events_(session, source.event, source.weight, false),
        schemas_(session.events(), session.features()),
        periods_(schemas_),
        names_(flame_names(session, frames, addresses_)),
        merge_by_(stack_merge_by(session, source.expands_inlines)),
        sees_periods_(session.layout().is_pipe || events_.reads_fields() || reads_more() || slow_) {}

  bool takes_non_samples() const override { return false; }
  MergeBy merge_by() const override { return merge_by_; }
  SumView* sum_view() override {
    const bool has_more =
        sees_periods_ || units_.has_event() || has_root(RootFrame::Cpu) || has_root(RootFrame::Cgroup);
    return has_more ? nullptr : this;
  }

  Flow on_sample(const ResolvedSample& sample) override {
    if (units_.takes(sample)) return Flow::Continue;
    has_samples_ = true;
    if (slow_ && slow_->take(sample)) return Flow::Continue;
    if (sample.stack == nullptr || !events_.takes(sample)) return Flow::Continue;
    const auto weight = events_.weight_of(sample);
    if (!weight) return Flow::Continue;
    if (sees_periods_) periods_.see(sample);
    const std::uint32_t row = row_of(sample);
    profile_.count(row, 0, {.period = *weight, .samples = 1});
    if (slow_) slow_->see(sample, row, *weight);
    return Flow::Continue;
  }

  Result<FlameFacts> finish(const StackCallback& take) {
    if (auto sound = events_.check(); !sound) return std::move(sound.error());
    name_new_rows();
    FlameFacts facts;
    const std::vector<std::string> units = units_of_events();
    for (std::size_t i = 0; i < taken_.size(); ++i)
      if (taken_[i]) facts.events.push_back({session_.events()[i].name, units[i]});
    // Where several events have one unit, their names are root frames of its graph.
    std::map<std::string_view, std::set<std::uint32_t>> names;  // by unit
    for (const Roots* row : rows_) names[units[row->event_index]].insert(row->event);
    std::vector<std::size_t> order(rows_.size());  // of rows
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t row) {
      return std::ranges::find(units, units[rows_[row]->event_index]) - units.begin();
    });
    const std::vector<FlameWeight> weights = weights_of_rows();
    std::vector<std::uint32_t> stack;
    for (const std::size_t row : order) {
      if (weights[row].before == 0 && weights[row].after == 0) continue;
      const auto frames = std::span(stacks_).subspan(starts_[row], ends_[row] - starts_[row]);
      stack.assign(frames.begin(), frames.end());
      const std::string& unit = units[rows_[row]->event_index];
      if (names[unit].size() > 1 && !has_root(RootFrame::Event))
        stack.insert(source_.is_reversed ? stack.end() : stack.begin(), rows_[row]->event);
      take(stack, weights[row], unit);
    }
    facts.has_samples = has_samples_;
    units_.give(facts);
    facts.addresses = std::move(addresses_);
    facts.notes =
        events_.notes(!rows_.empty() || !has_samples_,
                      names.size() > 1 ? StackEvents::Several::Apart : StackEvents::Several::Together);
    if (slow_) {
      facts.legend = slow_->legend();
      std::ranges::copy(slow_->notes(), std::back_inserter(facts.notes));
    }
    return facts;
  }

 private:
  struct Roots {
    std::uint32_t event = 0;  // its frame
    std::size_t event_index = 0;
    std::vector<std::uint32_t> frames;
    std::string text;  // rows differ by its address
  };

  SumShape shape() const override {
    SumShape shape;
    shape.by_location = false;
    shape.by_thread = has_root(RootFrame::Pid) || has_root(RootFrame::Tid);
    shape.needs_stack = true;
    shape.zero_periods = SumShape::ZeroPeriods::Count;
    shape.merge_by = merge_by_;
    return shape;
  }
  std::uint32_t row_of(const SumGroup& row) override {
    const SumSample sample(row, session_.events());
    return events_.takes(sample.get()) ? row_of(sample.get()) : IndexTable::kNone;
  }
  void count(std::uint32_t row, std::size_t, std::uint64_t period, std::uint64_t samples) override {
    if (row == IndexTable::kNone) return;
    profile_.count(row, 0, {.period = events_.counts_samples() ? samples : period, .samples = samples});
  }
  void end(const SumTotals& totals) override { has_samples_ = has_samples_ || totals.samples > 0; }

  // Of a sample with a stack whose event is taken.
  std::uint32_t row_of(const ResolvedSample& sample) {
    taken_.resize(std::max(taken_.size(), sample.event_index + 1));
    taken_[sample.event_index] = true;
    const std::uint32_t row = profile_.row_for(LateSample{.comm = roots_of(sample), .stack = sample.stack});
    if (profile_.rows().size() > rows_.size()) rows_.push_back(last_);
    if (merge_by_ == MergeBy::Address) name_new_rows();  // at once, while others read on
    return row;
  }
  bool has_root(RootFrame root) const { return contains_root(source_.roots, root); }
  bool reads_more() {
    return has_root(RootFrame::Cgroup) || periods_.reads_payloads(session_.events().size());
  }
  // The frames below the sample's stack, which are a key of the profile's rows.
  std::string_view roots_of(const ResolvedSample& sample) {
    const bool is_comm_alone = source_.roots.size() == 1 && source_.roots.front() == RootFrame::Comm;
    if (is_comm_alone) {  // equal names share their bytes
      const auto [known, is_new] = by_comm_.try_emplace({sample.comm.data(), sample.event_index}, nullptr);
      if (is_new) known->second = &make_roots(sample);
      last_ = known->second;
    } else {
      last_ = &make_roots(sample);
    }
    return last_->text;
  }
  Roots& make_roots(const ResolvedSample& sample) {
    const std::string event = shown(events_.name_of(sample));
    std::string key = event + '\0';
    std::vector<std::string> texts;
    for (const RootFrame root : source_.roots) {
      texts.push_back(shown(root_text(root, sample, events_.name_of(sample))));
      key += texts.back() + '\0';
    }
    const auto [known, is_new] = by_text_.try_emplace(key);
    Roots& roots = known->second;
    if (!is_new) return roots;
    roots.text = key;
    roots.event = frames_.number_of(event, "", FrameKind::Group);
    roots.event_index = sample.event_index;
    for (const std::string& text : texts)
      roots.frames.push_back(frames_.number_of(text, "", FrameKind::Group));
    return roots;
  }

  // Of the weights, by event. Counts of several events have one unit: they can be added up.
  std::vector<std::string> units_of_events() {
    std::vector<std::string> units(taken_.size());
    std::set<std::string_view> counted;
    const auto is_count = [&](std::size_t i) {
      const format::Event& event = session_.events()[i];
      const std::uint32_t type = event.attr.type;
      const bool is_of_events =
          type == abi::kTracepoint || type == abi::kSoftware || type == abi::kBreakpoint;
      return taken_[i] && is_of_events && (units[i] == printable(event.name) || units[i] == "samples");
    };
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (taken_[i])
        units[i] = weight_unit(source_.weight, session_.events()[i], schemas_.of(i), periods_.of(i));
      if (is_count(i)) counted.insert(units[i]);
    }
    if (counted.size() < 2) return units;
    for (std::size_t i = 0; i < taken_.size(); ++i)
      if (is_count(i)) units[i] = "events";
    return units;
  }

  std::vector<FlameWeight> weights_of_rows() {
    std::vector<FlameWeight> weights(rows_.size());
    if (slow_) {
      slow_->split([&weights](std::uint32_t row, SlowIntervals::Side side, std::uint64_t weight) {
        FlameWeight& to = weights[row];
        (side == SlowIntervals::Side::Slow ? to.after : to.before) += static_cast<double>(weight);
      });
    } else {
      for (std::size_t row = 0; row < rows_.size(); ++row)
        weights[row].after = static_cast<double>(profile_.rows()[row].only.period);
    }
    return weights;
  }

  void name_new_rows() {
    for (std::size_t row = starts_.size(); row < rows_.size(); ++row) {
      starts_.push_back(stacks_.size());
      stacks_.insert(stacks_.end(), rows_[row]->frames.begin(), rows_[row]->frames.end());
      names_.append(profile_.stack_of(row)->frames, FrameNames::Order::RootFirst, stacks_);
      if (source_.is_reversed)
        std::reverse(stacks_.begin() + static_cast<std::ptrdiff_t>(starts_.back()), stacks_.end());
      ends_.push_back(stacks_.size());
    }
  }

  Session& session_;
  const FlameSource& source_;
  UnitCount units_;
  std::optional<SlowIntervals> slow_;
  FlameFrames& frames_;
  StackEvents events_;
  EventSchemas schemas_;
  PeriodFields periods_;
  FrameAddresses addresses_;
  FrameNames names_;
  MergeBy merge_by_;
  bool sees_periods_;
  bool has_samples_ = false;
  std::vector<bool> taken_;                                        // by event
  std::map<std::pair<const char*, std::size_t>, Roots*> by_comm_;  // by its bytes, and the event
  std::unordered_map<std::string, Roots> by_text_;
  Roots* last_ = nullptr;
  Profile profile_{{EventBlock{}}, ProfileShape{}};  // its comm: the text of the roots
  std::vector<const Roots*> rows_;                   // by the profile's row
  std::vector<std::uint32_t> stacks_;                // frames of the rows that are named
  std::vector<std::size_t> starts_, ends_;           // in stacks_, by row
};

// Replaces frames by frames of the kind Waker with the same functions.
void make_wakers(FlameFrames& frames, FrameAddresses& addresses, std::span<std::uint32_t> stack) {
  for (std::uint32_t& frame : stack) {
    const FrameAddress address = addresses.of(frame);
    frame = frames.as_kind(frame, FrameKind::Waker);
    addresses.keep(frame, address);
  }
}

// Stacks of waits, weighted by the time of the wait. Below a mark they have the stack of the waker.
class FlameWaits : public Sink {
 public:
  FlameWaits(Session& session, const FlameSource& source, const WaitOptions& waits, UnitCount units,
             FlameFrames& frames, const StackCallback& take)
      : source_(source),
        units_(std::move(units)),
        frames_(frames),
        waits_(session, waits),
        names_(flame_names(session, frames, addresses_)),
        take_(take),
        mark_(frames.number_of(kWakerMark, "", FrameKind::Mark)) {}

  Waits& waits() { return waits_; }
  // After the run.
  FlameFacts facts() {
    FlameFacts facts{.events = {{"waits", "ns"}}, .notes = waits_.notes(), .has_samples = has_waits_};
    units_.give(facts);
    facts.addresses = std::move(addresses_);
    return facts;
  }
  bool takes_non_samples() const override { return false; }

  Flow on_sample(const ResolvedSample& sample) override {
    if (units_.takes(sample)) return Flow::Continue;
    if (const auto wait = waits_.take(sample)) add(*wait);
    return Flow::Continue;
  }

 private:
  void add(const Wait& wait) {
    has_waits_ = true;
    stack_.clear();
    for (const RootFrame root : source_.roots) {
      const std::string text = shown(root_text(root, wait.pid, wait.tid, wait.comm));
      stack_.push_back(frames_.number_of(text, "", FrameKind::Group));
    }
    names_.append(wait.stack->frames, FrameNames::Order::RootFirst, stack_);
    for (const Waker& waker : wait.wakers) {
      stack_.push_back(mark_);
      const std::size_t begin = stack_.size();
      if (waker.stack != nullptr)
        names_.append(waker.stack->frames.first(waker.frames), FrameNames::Order::LeafFirst, stack_);
      make_wakers(frames_, addresses_, std::span(stack_).subspan(begin));
      stack_.push_back(frames_.number_of(shown(waker.comm), "", FrameKind::Waker));
    }
    if (source_.is_reversed) std::ranges::reverse(stack_);
    take_(stack_, {0, static_cast<double>(wait.duration)}, "ns");
  }

  const FlameSource& source_;
  UnitCount units_;
  FlameFrames& frames_;
  Waits waits_;
  FrameAddresses addresses_;
  FrameNames names_;
  const StackCallback& take_;
  std::uint32_t mark_;
  bool has_waits_ = false;
  std::vector<std::uint32_t> stack_;  // of the wait at hand
};

Result<FlameFacts> read_waits(Session& session, const FlameSource& source, UnitCount units,
                              FlameFrames& frames, const RunSession& run, const StackCallback& take) {
  if (!are_of_threads(source.roots))
    return use_error("--off-cpu: a wait has a thread: --by takes comm, pid and tid");
  WaitOptions wanted = source.waits;
  wanted.who.condition = std::exchange(session.filter().condition, nullptr);
  FlameWaits sink(session, source, wanted, std::move(units), frames, take);
  if (auto found = sink.waits().find_events(); !found) return std::move(found.error());
  if (sink.waits().has_switches() && session.filter().looks_at_names())
    return use_error(
        "--off-cpu: every sample of sched:sched_switch is taken in the scheduler, so functions do not select "
        "waits; leave --dsos, --symbols and --symbol-filter out");
  run(sink);
  return sink.facts();
}

// The times of threads, below their state.
class FlameWall : public Sink {
 public:
  FlameWall(Session& session, const FlameSource& source, UnitCount units, FlameFrames& frames)
      : source_(source),
        units_(std::move(units)),
        frames_(frames),
        times_(session, source.waits),
        names_(flame_names(session, frames, addresses_)) {}

  WallTimes& times() { return times_; }
  Flow on_sample(const ResolvedSample& sample) override {
    if (!units_.takes(sample)) times_.take(sample);
    return Flow::Continue;
  }
  Flow on_non_sample(const NonSampleRecord& event) override {
    times_.take(event);
    return Flow::Continue;
  }

  // After the run.
  FlameFacts finish(const StackCallback& take) {
    times_.finish();
    give(take);
    const std::size_t threads = times_.threads().size();
    FlameFacts facts{
        .events = {{fmt::format("the time of {} thread{}", threads, threads == 1 ? "" : "s"), "ns"}},
        .notes = times_.notes(),
        .has_samples = !times_.rows().empty()};
    units_.give(facts);
    facts.addresses = std::move(addresses_);
    return facts;
  }

 private:
  void give(const StackCallback& take) {
    std::vector<std::uint32_t> stack;
    for (const WallRow& row : times_.rows()) {
      const WallThread& thread = times_.threads()[row.thread];
      stack.clear();
      for (const RootFrame root : source_.roots)
        stack.push_back(frames_.number_of(shown(root_text(root, thread.pid, thread.tid, thread.comm)), "",
                                          FrameKind::Group));
      stack.push_back(frames_.number_of(name_of(row.state), "", kind_of(row.state)));
      if (row.stack != nullptr) append(*row.stack, stack);
      if (source_.is_reversed) std::ranges::reverse(stack);
      take(stack, {0, row.time}, "ns");
    }
  }
  // Appends the frames of the wait, root first, then a mark and the frames of the waker, leaf first.
  void append(const Stack& chain, std::vector<std::uint32_t>& stack) {
    const auto marks = times_.chains().names_of(chain);
    bool is_waker = false;
    for (std::size_t i = chain.frames.size(); i-- > 0;) {
      if (marks[i] == WaitChains::kAddress) {
        const std::size_t begin = stack.size();
        names_.append(chain.frames.subspan(i, 1),
                      is_waker ? FrameNames::Order::LeafFirst : FrameNames::Order::RootFirst, stack);
        if (is_waker) make_wakers(frames_, addresses_, std::span(stack).subspan(begin));
        continue;
      }
      const std::string_view name = times_.chains().name(marks[i]);
      const bool is_mark = name == kWakerMark;
      is_waker |= is_mark;
      stack.push_back(frames_.number_of(shown(name), "", is_mark ? FrameKind::Mark : FrameKind::Waker));
    }
  }

  const FlameSource& source_;
  UnitCount units_;
  FlameFrames& frames_;
  WallTimes times_;
  FrameAddresses addresses_;
  FrameNames names_;
};

Result<FlameFacts> read_wall(Session& session, const FlameSource& source, UnitCount units,
                             FlameFrames& frames, const RunSession& run, const StackCallback& take) {
  FlameWall sink(session, source, std::move(units), frames);
  if (auto found = sink.times().find_events(); !found) return std::move(found.error());
  run(sink);
  return sink.finish(take);
}

}  // namespace

Result<FlameFacts> read_flame_samples(Session& session, const FlameSource& source, FlameFrames& frames,
                                      const RunSession& run, const StackCallback& take) {
  auto units = UnitCount::of(session, source.per);
  if (!units) return std::move(units.error());
  if (source.is_wall) return read_wall(session, source, std::move(*units), frames, run, take);
  if (source.waits.is_asked_for) return read_waits(session, source, std::move(*units), frames, run, take);
  std::optional<SlowIntervals> slow;
  if (source.slow.is_asked_for()) {
    auto found = SlowIntervals::find(session, source.slow);
    if (!found) return std::move(found.error());
    slow = std::move(*found);
  }
  FlameSink sink(session, source, std::move(*units), std::move(slow), frames);
  run(sink);
  return sink.finish(take);
}

namespace {

// More than any count of 64 bits; sums of such weights are finite.
constexpr double kMostFolded = 2e19;

// The number at the end of a line, after a blank; it is cut off.
std::optional<double> take_weight(std::string_view& line) {
  const auto blank = line.find_last_of(" \t");
  if (blank == std::string_view::npos) return std::nullopt;
  const std::string_view number = line.substr(blank + 1);
  double weight = 0;
  const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), weight);
  const bool is_number = fault == std::errc() && end == number.data() + number.size();
  if (!is_number || !(weight >= 0 && weight <= kMostFolded)) return std::nullopt;
  line = line.substr(0, blank);
  return weight;
}

// The name of a frame of folded stacks without the escapes that tacho folded adds to printable() names.
std::string unfolded_name(std::string_view text) {
  constexpr std::pair<std::string_view, char> kEscapes[] = {{"\\x20", ' '}, {"\\x23", '#'}, {"\\x3b", ';'}};
  std::string name = printable(text);
  for (const auto& [escape, letter] : kEscapes)
    for (auto at = name.find(escape); at != std::string::npos; at = name.find(escape, at + 1))
      name.replace(at, escape.size(), 1, letter);
  return name;
}

std::uint32_t folded_frame(std::string_view text, FlameFrames& frames) {
  FrameKind kind = FrameKind::User;
  constexpr std::pair<std::string_view, FrameKind> kEndings[] = {{"_[k]", FrameKind::Kernel},
                                                                 {"_[i]", FrameKind::Inlined},
                                                                 {"_[j]", FrameKind::Jit},
                                                                 {"_[w]", FrameKind::Waker}};
  if (text == kWakerMark || text == "--") return frames.number_of(printable(text), "", FrameKind::Mark);
  if (text.size() > 2 && text.starts_with('[') && text.ends_with(']')) kind = FrameKind::Unnamed;
  for (const auto& [ending, of_ending] : kEndings) {
    if (!text.ends_with(ending) || text.size() == ending.size()) continue;
    text.remove_suffix(ending.size());
    kind = of_ending;
    break;
  }
  return frames.number_of(unfolded_name(text), "", kind);
}

}  // namespace

FoldedText read_folded_text(std::istream& in, bool is_reversed, FlameFrames& frames,
                            const FoldedCallback& take,
                            const std::function<void(std::uint64_t bytes)>& before_stack) {
  constexpr std::size_t kDeepest = std::size_t{1} << 18, kFramesAlways = 100'000, kBytesOfFrame = 128;
  FoldedText read;
  std::uint64_t bytes = 0;
  std::string whole;
  std::vector<std::uint32_t> stack;
  while (std::getline(in, whole)) {
    ++read.lines;
    bytes += whole.size() + 1;
    std::string_view line = whole;
    if (read.lines == 1) format::take_prefix(line, "\xef\xbb\xbf");  // a byte order mark
    if (line.find_first_not_of(" \t\r") == std::string_view::npos || line.starts_with('#')) continue;
    while (line.ends_with(' ') || line.ends_with('\t') || line.ends_with('\r')) line.remove_suffix(1);
    const auto last = take_weight(line);
    if (!last) {
      if (read.faults++ == 0) read.first_fault = read.lines;
      continue;
    }
    FlameWeight weight{0, *last};
    std::string_view shorter = line;
    if (const auto first = take_weight(shorter)) {
      read.has_two_weights = true;
      weight = {*first, *last};
      line = shorter;
    }
    stack.clear();
    const std::size_t most_frames = kFramesAlways + bytes / kBytesOfFrame;
    bool is_whole = true;
    for (std::size_t at = 0; at <= line.size();) {
      is_whole = stack.size() < kDeepest && frames.size() < most_frames;
      if (!is_whole) break;
      const auto end = std::min(line.find(';', at), line.size());
      stack.push_back(folded_frame(line.substr(at, end - at), frames));
      at = end + 1;
    }
    if (is_reversed) std::ranges::reverse(stack);
    ++read.stacks;
    if (before_stack) before_stack(bytes);
    is_whole &= take(stack, weight);
    read.cut_stacks += is_whole ? 0 : 1;
  }
  return read;
}

}  // namespace tacho::report
