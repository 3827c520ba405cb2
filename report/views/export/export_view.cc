#include "report/views/export/export_view.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "report/decode/comments.h"
#include "report/filter_options.h"
#include "report/views/export/export_formats.h"

namespace tacho::report {
namespace {

struct LabelName {
  std::string_view name;
  bool ExportLabels::*is_kept;
};
constexpr LabelName kLabelNames[] = {
    {"comm", &ExportLabels::comm}, {"pid", &ExportLabels::pid},       {"tid", &ExportLabels::tid},
    {"cpu", &ExportLabels::cpu},   {"cgroup", &ExportLabels::cgroup}, {"fields", &ExportLabels::fields},
};

Result<> set_labels(std::string_view text, ExportLabels& labels) {
  labels = ExportLabels{};
  if (text == "none") return Done{};
  for (const std::string& word : parse_name_list(text)) {
    const auto* const row = std::ranges::find(kLabelNames, word, &LabelName::name);
    if (row == std::end(kLabelNames))
      return use_error("--labels: '" + printable(word) +
                       "' is no label; there are comm, pid, tid, cpu, cgroup and fields, or none");
    labels.*(row->is_kept) = true;
  }
  return Done{};
}

std::string format_list() {
  std::string list = "Formats of --to:\n";
  for (const ExportFormat& format : export_formats())
    list += fmt::format("  {:<12} {}\n", format.name, format.help);
  return list + "\n";
}

constexpr std::string_view kExportExamples =
    "Examples:\n"
    "  tacho export --to pprof -o cpu.pb.gz && go tool pprof -top cpu.pb.gz\n"
    "  tacho export --to pprof -i perf.data --lines -o cpu.pb.gz\n\n";

cli::CommandLine describe_export(ExportOptions& options, const ExportTraits& traits) {
  auto line = command_line("export",
                           "Writes a capture in a format of another tool, with every weight of its samples. "
                           "docs/export.md says what each format keeps.");
  line.epilog = format_list() + std::string(kExportExamples) + line.epilog;
  auto& rows = line.options;
  rows.push_back(cli::accepted("--to", cli::Takes::Value, "the format to write (see below)"));
  rows.back().value = "FORMAT";
  add_reading_options(rows, options.reading);
  rows.push_back(truncated_stacks_option(options.reading.session.symbols.cut_mark));
  if (traits.has_labels)
    rows.push_back({"--labels", cli::Takes::Value, "LIST",
                    "for pprof and otlp: which facts of samples stay apart: comm, pid, tid, cpu, cgroup and "
                    "fields (keys of "
                    "payloads), or none (default: all; fewer make a smaller file)",
                    [&options](std::string_view text) { return set_labels(text, options.choice.labels); }});
  if (traits.is_of_binary)
    rows.push_back(cli::text(
        "--binary", "NAME",
        "for bolt and autofdo: the program or library that the profile is of, by its path, the last "
        "part of it, or its build id (default: the one with most branches or samples)",
        options.binary));
  if (traits.lines == ExportTraits::Lines::Asked)
    rows.push_back(sets("--lines",
                        "keep every address apart, with its source file and line (default: one location for "
                        "each function)",
                        options.choice.places, ExportPlaces::Addresses));
  rows.push_back(event_option(options.reading.session.filter));
  add_filter_options(rows, options.reading.session.filter);
  return line;
}

}  // namespace

Result<cli::ExitStatus> show_export_help() {
  ExportOptions options;
  return run_command(describe_export(options, {.name = "", .has_labels = true, .is_of_binary = true}),
                     {"--help"}, [] { return cli::kWhole; });
}

Result<cli::ExitStatus> export_samples(const ExportTraits& traits, const std::vector<std::string>& arguments,
                                       ShowExport show) {
  ExportOptions options;
  options.choice.labels = traits.labels;
  if (traits.lines == ExportTraits::Lines::Always) options.choice.places = ExportPlaces::Lines;
  return run_command(describe_export(options, traits), arguments, [&]() -> Result<cli::ExitStatus> {
    options.reading.paging = Paging::Never;
    if (traits.is_binary && options.reading.is_standard_output() && ::isatty(STDOUT_FILENO) != 0)
      return use_error("--to " + std::string(traits.name) +
                       ": bytes that cannot be shown on a terminal; name a file with -o");
    if (options.choice.places != ExportPlaces::Functions)
      options.reading.session.symbols.source_lines = symbolize::SourceLines::Yes;
    return show_session(options.reading, [&options, show](Session& session, TextOutput& out) {
      return show(session, out, options);
    });
  });
}

Result<Shown> export_stacks(Session& session, TextOutput& out, const ExportOptions& options,
                            ExportOutput::Packing packing, const WriteStacks& write) {
  read_head(session);
  ExportStacks stacks(session, options.choice);
  auto shown = read_export(session, stacks, out);
  if (!shown) return shown;
  auto to = ExportOutput::begin(out, packing);
  if (!to) return std::move(to.error());
  write(stacks, *to);
  return shown;
}

Result<Shown> export_events(Session& session, TextOutput& out, const ExportOptions& options,
                            ExportPlaces places, const WriteEvents& write) {
  read_head(session);
  ExportEvents events(session, places);
  run_with_progress(session, events, out);
  auto to = ExportOutput::begin(out, packing_of(options.reading.output));
  if (!to) return std::move(to.error());
  write(events, *to);
  Shown shown(Symbols::Used);
  if (!events.has_samples()) shown.notes.emplace_back(kNoExportedSamples);
  return shown;
}

Result<Shown> read_export(Session& session, ExportStacks& stacks, TextOutput& out) {
  stacks.read_stacks([&](Sink& sink) { run_with_progress(session, sink, out); });
  Shown shown(Symbols::Used);
  if (!stacks.has_samples()) shown.notes.emplace_back(kNoExportedSamples);
  for (const std::string& note : stacks.notes()) shown.notes.push_back("tacho export: " + note);
  return shown;
}

std::vector<std::string> capture_lines(Session& session) {
  const format::Environment& environment = session.features().environment;
  std::vector<std::string> lines;
  const auto add = [&lines](std::string_view what, const std::string& text) {
    if (!text.empty()) lines.push_back(std::string(what) + ": " + printable(text));
  };
  std::string command;
  for (const std::string& word : environment.command_line) command += (command.empty() ? "" : " ") + word;
  add("command", command);
  add("host", environment.hostname.value_or(""));
  add("kernel", environment.os_release.value_or(""));
  add("arch", environment.arch.value_or(""));
  for (std::string& comment : attached_comments(session.features())) lines.push_back(std::move(comment));
  if (session.lost_samples() > 0) add("lost samples", fmt::format("{}", session.lost_samples()));
  return lines;
}

std::int64_t wall_clock_offset(const Session& session) {
  const auto& clock = session.features().environment.clock_data;
  return clock ? static_cast<std::int64_t>(clock->wall_ns - clock->clock_ns) : 0;
}

std::int64_t wall_time(std::uint64_t time, std::int64_t offset) {
  using Limits = std::numeric_limits<std::int64_t>;
  std::int64_t sum = 0;
  if (__builtin_add_overflow(time, offset, &sum)) return offset < 0 ? Limits::min() : Limits::max();
  return sum;
}

}  // namespace tacho::report
