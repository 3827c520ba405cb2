// tacho folded: distinct stacks with their weight, the input of flame graphs.
#include <algorithm>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>

#include "report/commands.h"
#include "report/filter_options.h"
#include "report/profile/function_table.h"
#include "report/profile/profile.h"
#include "report/profile/slow_intervals.h"
#include "report/profile/weight.h"
#include "report/samples/filter.h"
#include "report/samples/sums.h"
#include "report/views/folded/folded.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

struct Options {
  ReadingOptions reading;
  FoldOptions fold;
  std::string event_filter;  // empty: all events
  std::string weight;        // empty: the field tagged role:weight, else the period
  bool expands_inlines = false;
  WaitOptions waits;
  bool is_wall = false;
  SlowQuestion slow;
  Context context = Context::None;
};

// Replaces the common --inline by an option that resolves the inlined calls of every stack, as that of
// stackcollapse-perf.pl does.
void add_inline_options(std::vector<cli::Option>& rows, Options& options) {
  const auto general = std::ranges::find(rows, "--inline", &cli::Option::names);
  *general = {"--inline", cli::Takes::Nothing, "",
              "inlined calls in every stack, and whole names with parameters, as stackcollapse-perf.pl "
              "--inline (default: inlined calls only in stacks that are unwound here)",
              [&options](std::string_view) -> Result<> {
                options.expands_inlines = true;
                options.reading.session.symbols.inlines = symbolize::Inlines::All;
                options.reading.session.symbols.demangle = symbolize::Demangle::Whole;
                return Done{};
              }};
  rows.push_back(sets("--context", "with --inline: names end with their file and line", options.context,
                      Context::FileAndLine));
}

// stackcollapse-perf.pl's --pid and --tid have no value; perf's have one, and filter samples by it.
Result<> part_or_choose(std::string_view name, std::string_view text, bool& parts,
                        std::vector<std::uint32_t>& list) {
  if (text.empty()) {
    parts = true;
    return Done{};
  }
  auto numbers = parse_number_list(name, text);
  if (!numbers) return std::move(numbers.error());
  list = std::move(*numbers);
  return Done{};
}

cli::CommandLine describe(Options& options) {
  auto line = command_line("folded",
                           "Prints each distinct stack once with its weight, root first, as flamegraph.pl "
                           "reads it: tacho folded -i FILE | flamegraph.pl > flame.svg. If several events "
                           "have samples, lines begin with the event's name.");
  auto& rows = line.options;
  add_reading_options(rows, options.reading);
  rows.push_back(as_perf_option(options.reading));
  rows.push_back(truncated_stacks_option(options.reading.session.symbols.cut_mark));
  add_inline_options(rows, options);
  FoldOptions& fold = options.fold;
  rows.push_back({"--all", cli::Takes::Nothing, "",
                  "mark kernel frames with _[k] and frames of JIT compilers with _[j]",
                  [&fold](std::string_view) -> Result<> {
                    fold.marks.kernel = fold.marks.jit = true;
                    return Done{};
                  }});
  rows.push_back(flag("--kernel", "mark kernel frames with _[k]", fold.marks.kernel));
  rows.push_back(flag("--jit", "mark frames of JIT compilers with _[j]", fold.marks.jit));
  rows.push_back(flag("--addrs", "show the address of frames without a name", fold.marks.addresses));
  Filter& filter = options.reading.session.filter;
  rows.push_back({"--pid", cli::Takes::Optional, "LIST",
                  "one line for each process, as COMM-PID; --pid=LIST: only samples of these processes",
                  [&fold, &filter](std::string_view text) {
                    return part_or_choose("--pid", text, fold.shows_pid, filter.pids);
                  }});
  rows.push_back({"--tid", cli::Takes::Optional, "LIST",
                  "one line for each thread, as COMM-PID/TID; --tid=LIST: only samples of these threads",
                  [&fold, &filter](std::string_view text) {
                    return part_or_choose("--tid", text, fold.shows_tid, filter.tids);
                  }});
  rows.push_back({"--by", cli::Takes::Value, "LIST",
                  "root frames, outermost first: " + std::string(kRootFrameNames) + " (default: comm)",
                  [&fold](std::string_view text) -> Result<> {
                    auto roots = parse_root_frames("--by", text);
                    if (!roots) return std::move(roots.error());
                    fold.roots = std::move(*roots);
                    return Done{};
                  }});
  rows.push_back(event_list_option("--event-filter,--event",
                                   "default: all, below their names where several have samples",
                                   options.event_filter));
  add_filter_options(rows, filter, {"--pid", "--tid"});
  rows.push_back(cli::text(
      "--weight", "WHAT",
      "what a stack's number adds up: period (a period of 0 counts 1), samples, or a field of the payload "
      "or tracepoint (default: the payload's field tagged role:weight, else period)",
      options.weight));
  add_slow_options(
      rows, options.slow,
      "print two numbers on each line, as difffolded.pl and tacho flamegraph --folded read them");
  add_wait_options(rows, options.waits);
  rows.push_back(flag("--wall",
                      "all time of each thread in nanoseconds, from its start to its end, below its state: "
                      "[on-CPU], [runnable], [blocked: lock] and others, with the waker after '-- waker --' "
                      "(record -g -e cpu-clock,offcpu,waking,runqlat, or cpu-clock, sched:sched_switch and "
                      "sched:sched_waking); --tid: one line for each thread",
                      options.is_wall));
  return line;
}

// Adds up samples by their process's name and their stack, and names the stacks.
class FoldedSink : public Sink, private SumView {
 public:
  FoldedSink(Session& session, const Options& options, std::optional<SlowIntervals> slow)
      : session_(&session),
        options_(options.fold),
        slow_(std::move(slow)),
        events_(session, options.event_filter, options.weight, options.fold.as_perl),
        folded_(options.reading.names),
        names_(
            folded_frame_names(session, folded_, options.fold, {options.expands_inlines, options.context})),
        merge_by_(
            stack_merge_by(session, options.expands_inlines || options.fold.marks.addresses ||
                                        options.reading.session.symbols.inlines == symbolize::Inlines::All)) {
    if (options.fold.as_perl)
      java_names_.emplace(folded_frame_names(session, folded_, options.fold,
                                             {options.expands_inlines, options.context}, true));
  }

  bool takes_non_samples() const override { return false; }
  MergeBy merge_by() const override { return merge_by_; }
  // Only periods and sample counts are added up by several threads; weights in fields are read by one.
  SumView* sum_view() override {
    const bool is_serial = options_.as_perl || slow_ || events_.reads_fields() ||
                           contains_root(options_.roots, RootFrame::Cpu) ||
                           contains_root(options_.roots, RootFrame::Cgroup);
    return is_serial ? nullptr : this;
  }

  Flow on_sample(const ResolvedSample& sample) override {
    has_samples_ = true;
    if (slow_ && slow_->take(sample)) return Flow::Continue;
    if (sample.stack == nullptr || !events_.takes(sample)) return Flow::Continue;
    const auto weight = events_.weight_of(sample);
    const std::uint32_t row = weight ? row_of(sample) : IndexTable::kNone;
    if (row == IndexTable::kNone) return Flow::Continue;
    profile_.count(row, 0, {.period = *weight, .samples = 1});
    if (slow_) slow_->see(sample, row, *weight);
    return Flow::Continue;
  }

  StackEvents& events() { return events_; }
  bool has_samples() const { return has_samples_; }
  std::vector<std::string> notes_of_slow() const {
    if (!slow_) return {};
    std::vector<std::string> notes = slow_->legend();
    std::ranges::copy(slow_->notes(), std::back_inserter(notes));
    return notes;
  }
  // Call it after the capture is read.
  FoldedStacks& folded() {
    name_new_rows();
    if (slow_) {
      slow_->split([this](std::uint32_t row, SlowIntervals::Side side, std::uint64_t weight) {
        side == SlowIntervals::Side::Slow ? folded_.add(lines_[row], weight)
                                          : folded_.add_other(lines_[row], weight);
      });
      folded_.has_two_sides();
    } else {
      for (std::uint32_t row = 0; row < lines_.size(); ++row)
        folded_.add(lines_[row], profile_.rows()[row].only.period);
    }
    lines_.clear();
    return folded_;
  }
  // Whether lines begin with the name of an event, because there are several.
  bool has_roots() const {
    return std::ranges::any_of(begins_, [this](const Begin& begin) { return begin.root != begins_[0].root; });
  }

 private:
  SumShape shape() const override {
    SumShape shape;
    shape.by_location = false;
    shape.by_thread = options_.shows_pid || options_.shows_tid ||
                      contains_root(options_.roots, RootFrame::Pid) ||
                      contains_root(options_.roots, RootFrame::Tid);
    shape.needs_stack = true;
    shape.zero_periods = SumShape::ZeroPeriods::Count;
    shape.merge_by = merge_by_;
    return shape;
  }
  std::uint32_t row_of(const SumGroup& row) override {
    const SumSample sample(row, session_->events());
    return events_.takes(sample.get()) ? row_of(sample.get()) : IndexTable::kNone;
  }
  void count(std::uint32_t row, std::size_t, std::uint64_t period, std::uint64_t samples) override {
    if (row == IndexTable::kNone) return;
    profile_.count(row, 0, {.period = events_.counts_samples() ? samples : period, .samples = samples});
  }
  void end(const SumTotals& totals) override { has_samples_ = has_samples_ || totals.samples > 0; }

  // The row of a sample that has a stack and whose event is taken.
  std::uint32_t row_of(const ResolvedSample& sample) {
    FoldedStarts& starts = starts_of(sample);
    const FoldedStarts::Start& start = starts.of(sample, events_.name_of(sample));
    if (!start.is_seen) return IndexTable::kNone;
    const std::uint32_t row = profile_.row_for(LateSample{.comm = start.key, .stack = sample.stack});
    if (profile_.rows().size() > begins_.size())
      begins_.push_back({starts.root(), options_.is_by_comm() ? start.names.front() : 0, start.is_java,
                         options_.is_by_comm() ? nullptr : &start});
    if (merge_by_ == MergeBy::Address) name_new_rows();  // now, while other threads read on
    return row;
  }

  struct Begin {
    std::uint32_t root = 0, name = 0;  // of the event, and of the thread
    bool is_java = false;
    const FoldedStarts::Start* roots = nullptr;  // unless FoldOptions::is_by_comm()
  };
  FoldedStarts& starts_of(const ResolvedSample& sample) {
    if (sample.event_index >= starts_by_event_.size()) starts_by_event_.resize(sample.event_index + 1);
    FoldedStarts*& starts = starts_by_event_[sample.event_index];
    if (starts != nullptr) return *starts;
    const bool has_no_root = options_.as_perl || contains_root(options_.roots, RootFrame::Event);
    const std::uint32_t root = folded_.name(has_no_root ? "" : events_.name_of(sample));
    const auto known = std::ranges::find(starts_, root, &FoldedStarts::root);
    starts = known != starts_.end() ? &*known : &starts_.emplace_back(folded_, root, options_);
    return *starts;
  }
  void name_new_rows() {
    for (std::size_t row = lines_.size(); row < begins_.size(); ++row) {
      const Begin& begin = begins_[row];
      if (begin.roots == nullptr) {
        stack_ = {begin.root, begin.name};
      } else {
        stack_.assign(1, begin.root);
        stack_.insert(stack_.end(), begin.roots->names.begin(), begin.roots->names.end());
      }
      FrameNames& names = begin.is_java && java_names_ ? *java_names_ : names_;
      names.append(profile_.stack_of(row)->frames, FrameNames::Order::RootFirst, stack_);
      lines_.push_back(folded_.row_of(stack_));
    }
  }

  Session* session_;
  FoldOptions options_;
  std::optional<SlowIntervals> slow_;
  StackEvents events_;
  bool has_samples_ = false;
  FoldedStacks folded_;
  std::deque<FoldedStarts> starts_;             // one for each name of an event
  std::vector<FoldedStarts*> starts_by_event_;  // by the event's index; null: no sample yet
  FrameNames names_;
  std::optional<FrameNames> java_names_;  // with as_perl
  MergeBy merge_by_;
  Profile profile_{{EventBlock{}}, ProfileShape{}};  // its key is the comm, with which a line begins
  std::vector<Begin> begins_;                        // of lines, by the profile's row
  std::vector<std::uint32_t> lines_;  // rows of folded_, by the profile's row, after names are known
  std::vector<std::uint32_t> stack_;  // scratch
};

Result<Shown> show(Session& session, TextOutput& out, const Options& options) {
  if (options.is_wall) {
    if (!options.weight.empty() || !options.event_filter.empty())
      return use_error("--wall: threads are weighted by time; leave --weight and --event out");
    return show_wall(session, out, options.waits, options.fold, options.reading.names);
  }
  if (options.waits.is_asked_for) {
    if (!options.weight.empty() || !options.event_filter.empty())
      return use_error("--off-cpu: stacks are weighted by time; leave --weight and --event out");
    return show_waits(session, out, options.waits, options.fold, options.reading.names);
  }
  std::optional<SlowIntervals> slow;
  if (options.slow.is_asked_for()) {
    read_head(session);
    auto found = SlowIntervals::find(session, options.slow);
    if (!found) return std::move(found.error());
    slow = std::move(*found);
  }
  FoldedSink sink(session, options, std::move(slow));
  run_with_progress(session, sink, out);
  if (auto sound = sink.events().check(); !sound) return std::move(sound.error());
  FoldedStacks& folded = sink.folded();
  folded.write(out, sink.has_roots() ? 0 : 1);
  Shown shown(Symbols::Used);
  if (!sink.has_samples())
    shown.notes.emplace_back("tacho folded: the capture holds no samples, or none that the options ask for");
  for (const std::string& note : sink.notes_of_slow()) shown.notes.push_back("tacho folded: " + note);
  for (const std::string& note : sink.events().notes(!folded.empty() || !sink.has_samples()))
    shown.notes.push_back("tacho folded: " + note);
  return shown;
}

}  // namespace

Result<cli::ExitStatus> run_folded(const std::vector<std::string>& arguments) {
  Options options;
  return run_command(describe(options), arguments, [&options]() -> Result<cli::ExitStatus> {
    options.fold.as_perl = options.reading.perf_bytes.folds_as_perl;
    if (options.context == Context::FileAndLine && !options.expands_inlines)
      return use_error("--context adds file and line to names of --inline: it needs --inline");
    // stackcollapse-perf.pl --inline asks addr2line for each address anew.
    if (options.expands_inlines && options.reading.perf_bytes.is_asked_for)
      options.reading.session.symbols.use_symbol_name = symbolize::UseSymbolName::Innermost;
    if (!options.fold.is_by_comm() && options.fold.as_perl)
      return use_error("--by: stackcollapse-perf.pl has no such frames; leave out --as-perf");
    if ((options.is_wall || options.waits.is_asked_for) && !are_of_threads(options.fold.roots))
      return use_error("--wall and --off-cpu show threads: --by takes comm, pid and tid");
    if (auto sound = check_slow(options.slow); !sound) return std::move(sound.error());
    if (options.slow.is_asked_for() && (options.is_wall || options.waits.is_asked_for))
      return use_error("--slowest and --slow-where compare samples, without --wall and --off-cpu");
    if (options.is_wall)
      if (auto fit = check_wall_filter(options.reading.session.filter); !fit) return std::move(fit.error());
    if (options.waits.is_asked_for || options.is_wall)
      options.waits.who = take_who(options.reading.session.filter);
    return show_session(options.reading, [&options](Session& session, TextOutput& out) {
      return show(session, out, options);
    });
  });
}

}  // namespace tacho::report
