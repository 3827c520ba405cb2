// tacho folded: distinct stacks with their weight, the input of flame graphs.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "report/commands.h"
#include "report/filter_options.h"
#include "report/profile/stack_names.h"
#include "report/profile/stack_sums.h"
#include "report/profile/thread_stacks.h"
#include "report/samples/filter.h"
#include "report/views/folded/folded.h"

namespace tacho::report {
namespace {

struct Options {
  ReadingOptions reading;
  FoldOptions fold;
  StackSource source;
};

// Replaces the common --inline by an option that resolves the inlined calls of every stack, as that of
// stackcollapse-perf.pl does.
void add_inline_options(std::vector<cli::Option>& rows, Options& options) {
  const auto general = std::ranges::find(rows, "--inline", &cli::Option::names);
  *general = {"--inline", cli::Takes::Nothing, "",
              "inlined calls in every stack, and whole names with parameters, as stackcollapse-perf.pl "
              "--inline (default: inlined calls only in stacks that are unwound here)",
              [&options](std::string_view) -> Result<> {
                options.source.expands_inlines = options.fold.expands_inlines = true;
                options.reading.session.symbols.inlines = symbolize::Inlines::All;
                options.reading.session.symbols.demangle = symbolize::Demangle::Whole;
                return Done{};
              }};
  rows.push_back(sets("--context", "with --inline: names end with their file and line", options.fold.context,
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
                  [&options](std::string_view text) -> Result<> {
                    auto roots = parse_root_frames("--by", text);
                    if (!roots) return std::move(roots.error());
                    options.source.roots = std::move(*roots);
                    return Done{};
                  }});
  rows.push_back(event_list_option("--event-filter,--event",
                                   "default: all, below their names where several have samples",
                                   options.source.event));
  add_filter_options(rows, filter, {"--pid", "--tid"});
  rows.push_back(cli::text(
      "--weight", "WHAT",
      "what a stack's number adds up: period (a period of 0 counts 1), samples, or a field of the payload "
      "or tracepoint (default: the payload's field tagged role:weight, else period)",
      options.source.weight));
  add_slow_options(
      rows, options.source.slow,
      "print two numbers on each line, as difffolded.pl and tacho flamegraph --folded read them");
  add_wait_options(rows, options.source.waits);
  rows.push_back(flag("--wall",
                      "all time of each thread in nanoseconds, from its start to its end, below its state: "
                      "[on-CPU], [runnable], [blocked: lock] and others, with the waker after '-- waker --' "
                      "(record -g -e cpu-clock,offcpu,waking,runqlat, or cpu-clock, sched:sched_switch and "
                      "sched:sched_waking); --tid: one line for each thread",
                      options.source.is_wall));
  line.epilog.insert(0,
                     "Examples:\n"
                     "  tacho folded perf.data | flamegraph.pl > flame.svg\n"
                     "  tacho folded perf.data --by comm,tid    a root frame for each thread\n"
                     "  tacho folded slow.data --wall           all time of each thread, on the CPU and off\n"
                     "\n");
  return line;
}

using Notes = std::vector<std::string>;

Result<Notes> fold_times(Session& session, const StackSource& source, FoldedNames& names,
                         FoldedStacks& folded, const RunSession& run) {
  const auto add = [&folded](std::span<const std::uint32_t> stack, std::uint64_t ns) {
    folded.add_weight(folded.stacks().id_of(stack), ns);
    return folded.stacks().bytes() <= kMostChainBytes;
  };
  const auto add_part = [&add](std::span<const std::uint32_t> stack, double ns) {
    (void)add(stack, static_cast<std::uint64_t>(std::llround(ns)));
  };
  auto facts = source.is_wall ? read_times(session, source, names, run, add_part)
                              : read_waits(session, source, names, run, add);
  if (!facts) return std::move(facts.error());
  return std::move(facts->notes);
}

Result<Notes> fold_samples(Session& session, const Options& options, FoldedNames& names, FoldedStacks& folded,
                           const RunSession& run) {
  const FoldOptions& fold = options.fold;
  const bool shows_more =
      fold.marks.addresses || options.reading.session.symbols.inlines == symbolize::Inlines::All;
  StackSums sums(
      session, options.source,
      {.as_perl = fold.as_perl, .shows_more = shows_more, .tells_threads = fold.shows_pid || fold.shows_tid},
      names, folded.stacks());
  if (auto sound = sums.read(run); !sound) return std::move(sound.error());
  sums.each([&folded](const StackSums::Sum& sum) { folded.add_weight(sum.stack, sum.weight, sum.other); });
  if (!sums.has_several_events()) folded.leave_first_out();
  Notes notes;
  if (!sums.has_samples())
    notes.emplace_back("the capture holds no samples, or none that the options ask for");
  if (sums.slow()) {
    folded.has_two_sides();
    std::ranges::copy(sums.slow()->legend(), std::back_inserter(notes));
  }
  std::ranges::copy(sums.notes(), std::back_inserter(notes));
  return notes;
}

Result<Shown> show(Session& session, TextOutput& out, const Options& options) {
  const StackSource& source = options.source;
  if (source.is_of_times() || source.slow.is_asked_for()) read_head(session);
  FoldedStacks folded(options.reading.names);
  FoldedNames names(session, folded, options.fold);
  const RunSession run = [&](Sink& sink) { run_with_progress(session, sink, out); };
  auto notes = source.is_of_times() ? fold_times(session, source, names, folded, run)
                                    : fold_samples(session, options, names, folded, run);
  if (!notes) return std::move(notes.error());
  folded.write(out);
  Shown shown(Symbols::Used);
  for (const std::string& note : *notes) shown.notes.push_back("tacho folded: " + note);
  return shown;
}

}  // namespace

Result<cli::ExitStatus> run_folded(const std::vector<std::string>& arguments) {
  Options options;
  return run_command(describe(options), arguments, [&options]() -> Result<cli::ExitStatus> {
    options.fold.as_perl = options.reading.perf_bytes.folds_as_perl;
    if (options.fold.context == Context::FileAndLine && !options.source.expands_inlines)
      return use_error("--context adds file and line to names of --inline: it needs --inline");
    // stackcollapse-perf.pl --inline asks addr2line for each address anew.
    if (options.source.expands_inlines && options.reading.perf_bytes.is_asked_for)
      options.reading.session.symbols.use_symbol_name = symbolize::UseSymbolName::Innermost;
    if (options.fold.as_perl && options.source.roots != std::vector<RootFrame>{{RootKind::Comm}})
      return use_error("--by: stackcollapse-perf.pl has no such frames; leave out --as-perf");
    if (auto sound = check_stack_source(options.source, options.reading.session.filter); !sound)
      return std::move(sound.error());
    return show_session(options.reading, [&options](Session& session, TextOutput& out) {
      return show(session, out, options);
    });
  });
}

}  // namespace tacho::report
