// tacho why: where the time of threads went, with the evidence. The first word --of-capture: tacho-record,
// which made the capture, runs it.
#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/container/loss_text.h"
#include "report/command.h"
#include "report/commands.h"
#include "report/filter_options.h"
#include "report/output/output_parts.h"
#include "report/profile/slow_intervals.h"
#include "report/profile/wall_times.h"
#include "report/query/gather.h"
#include "report/views/why/findings.h"
#include "report/views/why/wait_facts.h"
#include "report/views/why/why_forms.h"
#include "report/views/why/why_page.h"

namespace tacho::report {
namespace {

constexpr std::string_view kDescription =
    "Says where the time of threads went: which functions have the CPU, for which locks, disks, peers and "
    "CPUs "
    "threads wait, and who holds these meanwhile. The largest share comes first, each with the call chain "
    "that "
    "proves it and the command that shows more. Threads that wait for work (epoll, accept, a condition of a "
    "pool) are idle, and no finding. FILE: a capture; without one, tacho why -p PID, -a or COMMAND records "
    "ten seconds first.";

constexpr std::string_view kExamples =
    "Examples:\n"
    "  tacho why -p 4711\n"
    "  tacho why -a --for 30s -o slow.data\n"
    "  tacho why -- ./build.sh\n"
    "  tacho why -i slow.data --json\n"
    "  tacho why -i slow.data --page slow.html\n\n";

struct Options {
  ReadingOptions reading;
  WaitOptions waits;
  SlowQuestion slow;
  bool as_json = false, is_kept = true, has_ended = false;
  bool has_source = false;  // --source
};

cli::CommandLine describe(Options& options) {
  auto line = command_line("why", std::string(kDescription));
  auto& rows = line.options;
  add_reading_options(rows, options.reading);
  rows.push_back(cli::flag("--json", "one JSON object with the same facts: docs/why.md", options.as_json));
  rows.push_back(
      {"--page", cli::Takes::Value, "FILE",
       "also write the page of tacho page to FILE, with the answer at its top: each finding selects its "
       "samples",
       [&reading = options.reading](std::string_view file) -> Result<> {
         if (file.empty()) return use_error("--page: the name of the file is empty");
         if (file == "-")
           return use_error("--page -: standard output has the answer; name a file: --page why.html");
         reading.more_outputs = {{"--page", std::string(file)}};
         return Done{};
       }});
  rows.push_back(cli::flag("--source",
                           "with --page: also the source and the instructions of the functions with most "
                           "samples, as tacho page --source",
                           options.has_source));
  rows.push_back(kcore_option(options.reading));
  rows.push_back(
      cli::text("--of", "EVENT[.FIELD]",
                "what the slowest 1 % of operations have more of than the others. Each sample of the "
                "event ends an operation of its thread, which took FIELD: call.duration_ns, "
                "syscall.lat_ns, tcp.lat_ns",
                options.slow.of));
  // tacho-record removes its capture after this.
  rows.push_back(sets("--not-kept", "", options.is_kept, false));
  rows.push_back(sets("--has-ended", "", options.has_ended, true));
  add_filter_options(rows, options.reading.session.filter);
  line.epilog = std::string(kExamples) + line.epilog;
  return line;
}

struct WhySink : Sink {
  // `shown_on`: null without --page.
  WhySink(Session& session, const WaitOptions& waits, std::optional<SlowIntervals> operations,
          WhyPage* shown_on)
      : page(shown_on),
        slow(std::move(operations)),
        facts(session),
        times(session, waits,
              {.keep = [this](const ResolvedSample& sample) { return keep(sample); },
               .facts_of = [this](const Wait& wait) { return facts_of(wait); }}) {}
  std::uint32_t keep(const ResolvedSample& sample) {
    const std::uint32_t number = facts.keep(sample);
    return page == nullptr ? number : page->keep(sample, number);
  }
  std::uint32_t facts_of(const Wait& wait) {
    Wait known = wait;
    if (page != nullptr) known.kept = page->facts_of(wait.kept);
    return facts.facts_of(known);
  }
  Flow on_sample(const ResolvedSample& sample) override {
    ++samples;
    if (page != nullptr) page->take_sample(sample);
    if (!slow || !slow->take(sample)) times.take(sample);
    return Flow::Continue;
  }
  Flow on_non_sample(const NonSampleRecord& event) override {
    times.take(event);
    return Flow::Continue;
  }
  std::uint64_t samples = 0;
  WhyPage* page;
  std::optional<SlowIntervals> slow;
  WaitFactsTable facts;
  WallTimes times;
};

// What the answer cannot see.
std::vector<std::string> missing_in(Session& session, const WhySink& sink) {
  std::vector<std::string> missing;
  const std::uint64_t lost = all_lost_samples(session), all = lost + sink.samples;
  if (lost > 0) {
    const std::string where = format::where_and_when_lost(session.features().environment.losses);
    missing.push_back(fmt::format("{} of {} events were lost while recording ({:.2g} %){}", lost, all,
                                  100 * static_cast<double>(lost) / static_cast<double>(all),
                                  where.empty() ? "" : ": " + printable(where)));
    session.diagnostics().remove(format::Damage::Lost);
  }
  // tacho why records waits of preempted threads, though there may be none.
  const auto& command = session.features().environment.command_line;
  const bool is_own = command.size() > 1 && command[1] == "--why";
  for (std::string& note : sink.times.notes())
    if (!is_own || !note.starts_with("no event says when threads wait for a CPU"))
      missing.push_back(std::move(note));
  if (!sink.facts.has_objects())
    missing.push_back(fmt::format(
        "no event says for which lock, file or peer threads wait; {}",
        is_own ? "that needs BPF: run as root, or with CAP_BPF, CAP_PERFMON and a readable tracefs"
               : "record with tacho why, or -e offcpu"));
  return missing;
}

Result<Shown> show(Session& session, TextOutput& out, Options& options) {
  read_head(session);
  std::optional<WhyPage> page;
  if (!options.reading.more_outputs.empty())
    page.emplace(session, session.filter(),
                 options.has_source ? WhyPage::Code::Packed : WhyPage::Code::LeftOut);
  options.waits.who = take_who(session.filter());
  std::optional<SlowIntervals> operations;
  if (!options.slow.of.empty()) {
    constexpr double kSlowest = 0.01;
    options.slow.share = kSlowest;
    auto found = SlowIntervals::find(session, options.slow);
    if (!found) return std::move(found.error());
    operations.emplace(std::move(*found));
  }
  WhySink sink(session, options.waits, std::move(operations), page ? &*page : nullptr);
  if (!sink.times.find_events())
    return use_error(
        "no event of the capture says when threads wait, or what they do on the CPU; tacho why -p PID, -a or "
        "COMMAND records what it needs");
  run_with_progress(session, sink, out);
  sink.times.finish();
  const Answer answer = find_causes(session, sink.times, sink.facts, sink.slow ? &*sink.slow : nullptr);
  WhyText how{.input = options.reading.shown_input(),
              .is_kept = options.is_kept,
              .names = options.reading.names,
              .room = options.reading.terminal_room(),
              .clock = sink.times.name_of_clock(),
              .has_objects = sink.facts.has_objects(),
              .missing = missing_in(session, sink)};
  if (options.has_ended)
    how.missing.insert(how.missing.begin(), "the rest of the time: the process ended while it was recorded");
  if (answer.without_holders > 0)
    how.missing.push_back(
        fmt::format("who held the locks in the last {} waits: there are too many", answer.without_holders));
  TextBuffer text;
  options.as_json ? write_json(text, answer, how) : write_text(text, answer, how);
  if (!page) {
    out.text(text.view());
    return Shown(Symbols::Used);
  }
  write_part(out, text.view());
  if (auto written = page->write(out, answer, sink.times, sink.facts, how); !written)
    return std::move(written.error());
  Shown shown(Symbols::NotUsed);
  for (const std::string& note : page->notes()) shown.notes.push_back("tacho why: " + note);
  return shown;
}

}  // namespace

Result<cli::ExitStatus> run_why(const std::vector<std::string>& arguments) {
  Options options;
  return run_command(describe(options), arguments, [&options]() -> Result<cli::ExitStatus> {
    if (options.has_source && options.reading.more_outputs.empty())
      return use_error("--source is for the page: --page why.html");
    auto& symbols = options.reading.session.symbols;
    if (options.has_source && symbols.inlines == symbolize::Inlines::No)
      symbols.source_lines = symbolize::SourceLines::Yes;
    return show_session(options.reading, [&options](Session& session, TextOutput& out) {
      return show(session, out, options);
    });
  });
}

}  // namespace tacho::report
