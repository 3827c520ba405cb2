#include "report/views/report/command_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "report/output/terminal.h"
#include "report/perf_text/header_text.h"
#include "report/perf_text/raw_dump.h"
#include "report/profile/name_pattern.h"
#include "report/views/report/graph_options.h"
#include "report/views/report/report_mode.h"
#include "report/views/report/report_options.h"
#include "report/views/report/report_sink.h"
#include "report/views/report/task_list.h"

namespace tacho::report {
namespace {

constexpr std::string_view kHeaderHint =
    "# To display the perf.data header info, please use --header/--header-only options.\n#\n";

// Writes the header, for a pipe as far as its first records go.
void write_heads(TextOutput& out, Session& session, const ReportOptions& options) {
  const Names names = options.reading.names;
  write_header(out, session.layout(), session.events(), session.features(), names, options.header.detail);
  if (!session.layout().is_pipe || !options.header.is_alone) return;
  read_head(session);
  write_features(out, session.events(), session.features(), names, options.header.detail);
}

// As perf, which writes no header with -q.
bool wants_header(const ReportOptions& options) {
  return options.header.is_shown && !options.look.is_quiet && !options.is_for_programs();
}

Result<> check_patterns(const ReportOptions& options) {
  for (const auto& [option, pattern] : {std::pair("--parent", options.chains.parent.value_or("")),
                                        std::pair("--ignore-callees", options.chains.ignored_callees)}) {
    const NamePattern parsed(pattern);
    if (!parsed.is_sound())
      return use_error(std::string(option) + ": '" + pattern +
                       "' is no regular expression: " + parsed.fault());
  }
  return Done{};
}

Result<Shown> show_rows(Session& session, TextOutput& out, const ReportOptions& options) {
  if (auto checked = check_events(session, options.reading); !checked) return checked.error();
  ReportSink sink(session, options, has_colour(options.colour, out.is_for_person()));
  if (!session.layout().is_pipe && !options.header.is_alone)
    if (auto arranged = sink.arrange(); !arranged) return arranged.error();
  if (wants_header(options) || options.header.is_alone) {
    write_heads(out, session, options);
  } else if (!options.look.is_quiet && !options.is_for_programs()) {
    out.text(kHeaderHint);
  }
  if (options.header.is_alone) return Shown(Symbols::NotUsed);

  run_with_progress(session, sink, out);
  // A pipe without samples: wrong options are reported here.
  if (!sink.is_arranged())
    if (auto arranged = sink.arrange(); !arranged) return arranged.error();
  if (const auto failure = sink.failure()) return *failure;
  sink.report(session.diagnostics());
  if (sink.empty()) {
    Shown shown(Symbols::NotUsed);
    if (options.waits.is_asked_for)
      shown.notes = sink.notes();
    else if (const std::string note = no_rows_note(session, options); !note.empty())
      shown.notes.push_back(note);
    if (options.is_for_programs()) sink.finish().write(out);
    return shown;
  }
  const ReportTable& rows = sink.finish();
  if (!options.is_for_programs()) rows.write_single_values(out);
  if (!options.look.is_quiet && !options.is_for_programs())
    out.text(fmt::format("#\n# Total Lost Samples: {}\n#\n", session.lost_samples()));
  rows.write(out);
  Shown shown(Symbols::Used);
  shown.notes = sink.notes();
  std::ranges::move(rows.unmatched_names(), std::back_inserter(shown.notes));
  return shown;
}

}  // namespace

std::string no_rows_note(Session& session, const ReportOptions& options) {
  if (session.diagnostics().incomplete()) return {};
  const bool is_filtered = session.filter().looks_at_start() || session.filter().condition != nullptr ||
                           options.switches.is_asked_for();
  return "tacho: " + printable(options.reading.session.input) +
         (is_filtered ? ": no sample is one that --event, --cpu, --time, --where and --switch-on ask for"
                      : ": it holds no samples");
}

Result<> prepare_report(ReportOptions& options) {
  if (auto checked = check_patterns(options); !checked) return checked.error();
  if (options.has_levels && !options.columns.fields.empty())
    return use_error("--hierarchy: columns of levels come from --sort; --fields cannot be used with it");
  if (options.has_levels && options.is_for_programs())
    return use_error("--hierarchy: rows of --json and --csv have no levels; each row has all keys");
  if (options.is_for_programs() && (!options.look.separator.empty() || !options.look.widths.empty()))
    return use_error(
        "-t and -w are of text; --json and --csv have forms of their own (docs/report-forms.md)");
  if (options.branches.extend_chains) {
    options.graph.key = ChainKey::Address;
    if (options.columns.sort.empty()) options.columns.sort = "srcline,symbol,dso";
  }
  if (needs_source_lines(options)) options.reading.session.symbols.source_lines = symbolize::SourceLines::Yes;
  // Samples that the filter refuses are not read; but with --switch-on and --switch-off, samples of other
  // CPUs may be the events that switch.
  Filter& read = options.reading.session.filter;
  if (options.waits.is_asked_for) options.waits.who.cpus = std::exchange(options.filter.cpus, {});
  if (!options.switches.is_asked_for()) read.cpus = std::exchange(options.filter.cpus, {});
  read.time_text = options.filter.time_text;
  read.condition = std::exchange(options.filter.condition, nullptr);
  auto& demangle = options.reading.session.symbols.demangle;
  if (options.is_verbose && demangle == symbolize::Demangle::Yes) demangle = symbolize::Demangle::Whole;
  // Code without a name is shown by its address, which differs between processes.
  options.reading.session.keeps_addresses = true;
  options.reading.session.keeps_callers = options.begins_with_caller();
  // Waits always need the stack with which they began, even if rows show none.
  options.reading.session.wants_stacks =
      options.wants_children || options.graph.form != GraphForm::None || options.chains.parent ||
      names_key_with(options.columns, SortKey::Needs::CallChains) || options.waits.is_asked_for;
  return Done{};
}

Result<cli::ExitStatus> print_report(ReportOptions& options) {
  if (options.lists.records || options.lists.stats) {
    return show_records(options.reading, [&options](auto& reader, auto& diagnostics, TextOutput& out) {
      const Names names = options.reading.names;
      if (wants_header(options))
        write_header(out, reader.layout(), reader.events(), reader.features(), names, options.header.detail);
      else if (options.lists.records && !options.look.is_quiet)
        out.text(kHeaderHint);
      if (options.lists.records)
        write_raw_trace(out, reader, diagnostics, options.reading.session.input, names);
      else
        write_stats(out, reader, diagnostics, names);
      return Result<Shown>(Shown(Symbols::NotUsed));
    });
  }
  if (options.lists.tasks || options.lists.maps) {
    return show_session(options.reading, [&options](Session& session, TextOutput& out) {
      if (wants_header(options)) write_heads(out, session, options);
      return show_tasks(session, out, options.lists.maps ? TaskList::Maps::Yes : TaskList::Maps::No,
                        options.reading.names);
    });
  }
  if (auto prepared = prepare_report(options); !prepared) return std::move(prepared.error());
  return show_session(options.reading, [&options](Session& session, TextOutput& out) {
    return show_rows(session, out, options);
  });
}

}  // namespace tacho::report
