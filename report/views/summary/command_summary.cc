// tacho summary: one screen about a capture.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/exit_status.h"
#include "cli/message_text.h"
#include "format/base/result.h"
#include "report/command.h"
#include "report/commands.h"
#include "report/filter_options.h"
#include "report/output/field_sinks.h"
#include "report/output/quantity_text.h"
#include "report/output/terminal.h"
#include "report/views/summary/capture_summary.h"

namespace tacho::report {
namespace {

// A command that the summary recommends, depending on what the capture has.
struct NextCommand {
  std::string command;  // quoted for a shell
  std::string why;      // what it shows
};

constexpr std::size_t kMost = 3;
constexpr double kEnoughNames = 0.95;  // share of named frames below which packing symbols is recommended

using Kind = EventSummary::Kind;

bool has_kind(const CaptureSummary& summary, Kind kind) {
  return std::ranges::find(summary.events, kind, &EventSummary::kind) != summary.events.end();
}

// Chooses the commands that the summary recommends.
class CommandChooser {
 public:
  // `input` is the capture's name; "-" becomes FILE.
  CommandChooser(const CaptureSummary& summary, const std::string& input)
      : summary_(summary), file_(input == "-" ? "FILE" : cli::shell_word(input)) {}

  // Three commands, or fewer for a capture without samples.
  std::vector<NextCommand> choose() {
    if (!summary_.chosen) {
      add(fmt::format("tacho header -i {}", file_),
          "the host, the command line and the events; the capture has no samples");
      add(fmt::format("tacho dump -i {}", file_), "its records, one by one");
      return std::move(commands_);
    }
    add_picture();
    if (summary_.names.share() < kEnoughNames) add_names();
    add_fields();
    const EventSummary& chosen = summary_.events[*summary_.chosen];
    if (summary_.functions > 0)
      add(fmt::format("tacho report -i {} --no-children{}", file_, of_event(chosen)),
          "every function by its share");
    add(fmt::format("tacho script -i {}{}", file_, of_event(chosen)), "every sample, one by one");
    add(fmt::format("tacho header -i {}", file_), "the host, the command line and the events");
    commands_.resize(std::min(commands_.size(), kMost));
    return std::move(commands_);
  }

 private:
  void add(std::string command, std::string why) {
    commands_.push_back({std::move(command), std::move(why)});
  }

  std::string of_event(const EventSummary& event) const {
    return summary_.events.size() == 1 ? "" : " --event " + cli::shell_word(event.name);
  }

  void add_picture() {
    const EventSummary& chosen = summary_.events[*summary_.chosen];
    const bool has_waits = summary_.waits && summary_.waits->waits > 0;
    if (has_waits && has_kind(summary_, Kind::Clock))
      return add(fmt::format("tacho flamegraph -i {} --wall -o wall.svg", file_),
                 "all time of threads: on the CPU, runnable, blocked");
    if (has_waits)
      return add(fmt::format("tacho flamegraph -i {} --off-cpu{} -o waits.svg", file_,
                             summary_.waits->has_wakers ? " --wakers" : ""),
                 "where threads wait, and for how long");
    if (chosen.has_stacks)
      return add(fmt::format("tacho flamegraph -i {}{} -o graph.svg", file_, of_event(chosen)),
                 chosen.unit == "ns" ? "where time goes, with callers" : "which calls lead there");
    const auto stacks = std::ranges::find(summary_.events, true, &EventSummary::has_stacks);
    if (stacks != summary_.events.end())
      add(fmt::format("tacho flamegraph -i {}{} -o graph.svg", file_, of_event(*stacks)),
          "which calls lead there");
  }

  // tacho pack would add no names to a capture that is packed.
  void add_names() {
    if (summary_.is_packed)
      return add(fmt::format("tacho doctor {}", file_), "why frames have no name, by program and library");
    add(fmt::format("tacho pack {}", file_),
        "on the host that was recorded: puts missing names into the file");
  }

  // The field that views show by default comes before others.
  void add_fields() {
    auto shown = std::ranges::find(summary_.fields, true, &FieldSummary::is_value);
    if (shown == summary_.fields.end()) shown = summary_.fields.begin();
    if (shown != summary_.fields.end()) {
      const EventSummary& event = summary_.events[shown->event];
      add(fmt::format("tacho {} -i {} --event {} --field {}{}", shown->is_counted ? "hist" : "heatmap", file_,
                      cli::shell_word(event.name), cli::shell_word(shown->name),
                      shown->is_counted ? " --by none" : ""),
          shown->is_counted ? "how its values are spread" : "how its values are spread over time");
    }
    const auto payload = std::ranges::find(summary_.events, Kind::Payload, &EventSummary::kind);
    if (payload != summary_.events.end())
      return add(fmt::format("tacho table -i {} --event {}", file_, cli::shell_word(payload->name)),
                 "its payload in groups: counts, sums, percentiles");
    const auto tracepoint = std::ranges::find(summary_.events, Kind::Tracepoint, &EventSummary::kind);
    if (tracepoint != summary_.events.end())
      add(fmt::format("tacho table -i {} --event {} --by comm", file_, cli::shell_word(tracepoint->name)),
          "who runs into it, and how often");
  }

  const CaptureSummary& summary_;
  std::string file_;
  std::vector<NextCommand> commands_;
};

constexpr std::string_view kDescription =
    "Shows one screen about a capture: the host, the events and their numbers of samples, lost events, the "
    "share of frames with names, the heaviest processes and functions, waits, percentiles of fields of BPF "
    "events, and three commands that show more. FILE: by default perf.data.";

constexpr std::string_view kExamples =
    "Examples:\n"
    "  tacho summary perf.data\n"
    "  tacho summary perf.data --json\n\n";

constexpr std::uint64_t kVersion = 1;  // of the JSON form
// Rows in the text.
constexpr std::size_t kEvents = 5, kProcesses = 4, kFunctions = 8, kWaits = 3, kFields = 5;
constexpr std::size_t kRowsInJson = 100;
constexpr std::size_t kDefaultWidth = 160;  // columns of a line if the output is no terminal
constexpr std::size_t kLabelWidth = 11;     // columns of the labels at the left

struct Options {
  ReadingOptions reading;
  bool as_json = false, is_wide = false;
};

cli::CommandLine describe(Options& options) {
  auto line = command_line("summary", std::string(kDescription));
  auto& rows = line.options;
  add_reading_options(rows, options.reading);
  rows.push_back(cli::flag("--json",
                           "one JSON object with the same facts, at most 100 processes, functions and waits: "
                           "docs/report-forms.md",
                           options.as_json));
  rows.push_back(
      cli::flag("-w,--wide", "as wide as names need; by default lines fit the terminal", options.is_wide));
  add_filter_options(rows, options.reading.session.filter);
  line.epilog = std::string(kExamples) + line.epilog;
  return line;
}

std::string amount(const ExpressionValue& value, std::string_view unit) {
  if (value.is_nothing()) return "-";
  return quantity_text(
      value.kind == ExpressionValue::Kind::Whole ? static_cast<double>(value.whole) : value.real, unit);
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "-"
                    : fmt::format("{:.2f} %", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

// Rounds down, so that 99.99 is not shown as 100.
std::string named_share(const NamedFrames& names) {
  const bool is_all = names.named_frames == names.frames;
  return fmt::format("{:.1f} %", is_all ? 100.0 : std::min(100 * names.share(), 99.9));
}

std::string count_of(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// A line with a label at the left; the text is cut to the width of the line.
void write_head_line(TextOutput& out, std::string_view word, std::string_view text, std::size_t room) {
  out.left(word, kLabelWidth);
  out.text(room == 0 ? std::string(text) : cut_in_the_middle(text, room - std::min(room, kLabelWidth)));
  out.character('\n');
}

// Columns of a table; the last one holds names, and all others numbers or short texts at the right.
void write_rows(TextOutput& out, std::vector<std::vector<std::string>> rows, std::vector<bool> are_names,
                std::size_t room) {
  constexpr std::size_t kGap = 2;
  std::vector<std::size_t> widths(are_names.size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  fit_columns(widths, are_names, kGap, room < kGap ? room : room - kGap);
  for (auto& row : rows) {
    out.blanks(kGap);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) out.blanks(kGap);
      if (are_names[i] && room != 0) row[i] = cut_in_the_middle(row[i], widths[i]);
      if (!are_names[i]) {
        out.padded(row[i], widths[i]);
      } else {
        i + 1 == row.size() ? out.text(row[i]) : out.left(row[i], widths[i]);
      }
    }
    out.character('\n');
  }
}

template <class T>
std::span<const T> first_of(const std::vector<T>& rows, std::size_t most) {
  return std::span(rows).first(std::min(rows.size(), most));
}

std::string more(std::size_t all, std::size_t shown) {
  return all > shown ? fmt::format(" ({} of {})", shown, all) : "";
}

class SummaryText {
 public:
  SummaryText(Session& session, const CaptureSummary& summary, const Options& options, TextOutput& out)
      : session_(session),
        summary_(summary),
        out_(out),
        input_(options.reading.session.input),
        names_(options.reading.names),
        room_(options.is_wide                        ? 0
              : options.reading.terminal_room() != 0 ? options.reading.terminal_room()
                                                     : kDefaultWidth) {}

  void write() {
    write_head();
    if (!summary_.chosen) return write_next();
    write_events();
    write_processes();
    write_functions();
    write_waits();
    write_fields();
    write_next();
  }

 private:
  std::string safe(std::string_view text) const { return printable(text, names_); }
  void title(std::string_view text) {
    out_.text(room_ == 0 ? std::string(text) : cut_in_the_middle(text, room_));
    out_.character('\n');
  }
  void write_head() {
    const format::Environment& recorded = session_.features().environment;
    const format::CaptureLayout& layout = session_.layout();
    std::string capture = input_ == "-" ? "standard input" : safe(input_);
    if (!layout.is_pipe) capture += ": " + quantity_text(static_cast<double>(layout.file_size), "bytes");
    if (recorded.version)
      capture +=
          ", recorded by " +
          safe(recorded.version->starts_with("tacho") ? *recorded.version : "perf " + *recorded.version);
    write_head_line(out_, "capture", capture, room_);
    write_head_line(out_, "host", host(), room_);
    std::string command;
    for (const std::string& word : recorded.command_line)
      command += (command.empty() ? "" : " ") + safe(word);
    if (!command.empty()) write_head_line(out_, "command", command, room_);
    if (summary_.samples > 0) write_head_line(out_, "time", when(), room_);
    std::string samples = std::to_string(summary_.samples);
    if (summary_.samples > 0) samples += " of " + count_of(summary_.events.size(), "event", "events");
    samples += fmt::format("; {} lost", summary_.lost);
    if (summary_.lost > 0)
      samples += fmt::format(" ({})", percent(summary_.lost, summary_.lost + summary_.samples));
    if (summary_.names.frames > 0)
      samples +=
          fmt::format("; {} of {} frames have a name", named_share(summary_.names), summary_.names.frames);
    write_head_line(out_, "samples", samples, room_);
    std::string damage;
    std::size_t others = 0;
    for (const format::Finding& finding : session_.diagnostics().findings()) {
      const bool is_damage = finding.kind != format::Damage::NoSymbols &&
                             finding.kind != format::Damage::Lost &&
                             finding.kind != format::Damage::Outside && finding.kind != format::Damage::Note;
      if (is_damage && damage.empty())
        damage = safe(format::Diagnostics::finding_text(finding));
      else if (is_damage)
        ++others;
    }
    if (others > 0) damage += fmt::format("; and {} more", others);
    if (!damage.empty()) write_head_line(out_, "damage", damage, room_);
  }

  std::string host() const {
    const format::Environment& host = session_.features().environment;
    std::string text = host.hostname ? safe(*host.hostname) : "not known";
    if (host.os_release) text += ", Linux " + safe(*host.os_release);
    if (host.arch) text += ", " + safe(*host.arch);
    if (host.cpus_online) text += ", " + count_of(*host.cpus_online, "CPU", "CPUs");
    if (host.cpu_description) text += ", " + safe(*host.cpu_description);
    return text;
  }

  // The date of the first sample, if the capture relates its clock to dates, and the time up to the last one.
  std::string when() const {
    if (!summary_.time) return "the samples have no times";
    const auto [first, last] = *summary_.time;
    std::string text =
        quantity_text(static_cast<double>(last - first), "ns") + " from the first sample to the last";
    if (const auto& clock = session_.features().environment.clock_data) {
      const auto second =
          static_cast<std::time_t>((clock->wall_ns + (first - clock->clock_ns)) / 1'000'000'000);
      std::tm day{};
      char date[32] = "";
      if (::gmtime_r(&second, &day) != nullptr &&
          std::strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S UTC", &day) > 0)
        text = std::string(date) + ", " + text;
    }
    return text;
  }

  void write_events() {
    const auto shown = first_of(summary_.events, kEvents);
    title("events" + more(summary_.events.size(), shown.size()));
    std::vector<std::vector<std::string>> rows;
    for (const EventSummary& event : shown) {
      std::string about = safe(event.name);
      std::string more_of_it = event.frequency ? fmt::format("{} Hz", *event.frequency) : "";
      if (event.has_stacks) more_of_it += more_of_it.empty() ? "stacks" : ", stacks";
      if (!more_of_it.empty()) about += " (" + more_of_it + ")";
      std::string weight;
      if (event.unit == event.name)
        weight = event.period == event.samples ? "" : fmt::format("{} hits", event.period);
      else if (event.unit != "samples")
        weight = quantity_text(static_cast<double>(event.period), event.unit);
      rows.push_back({count_of(event.samples, "sample", "samples"), weight, about});
    }
    write_rows(out_, std::move(rows), {false, false, true}, room_);
  }

  void write_processes() {
    const EventSummary& chosen = summary_.events[*summary_.chosen];
    const auto shown = first_of(summary_.heaviest_processes, kProcesses);
    if (shown.empty()) return;
    title(fmt::format("processes by {}{}", safe(chosen.name), more(summary_.processes, shown.size())));
    std::vector<std::vector<std::string>> rows;
    for (const ProcessSummary& process : shown)
      rows.push_back({percent(process.period, chosen.period), count_of(process.samples, "sample", "samples"),
                      count_of(process.threads, "thread", "threads"),
                      fmt::format("{} ({})", process.comm.empty() ? "[unnamed]" : safe(process.comm),
                                  static_cast<std::int32_t>(process.pid))});
    write_rows(out_, std::move(rows), {false, false, false, true}, room_);
  }

  void write_functions() {
    const EventSummary& chosen = summary_.events[*summary_.chosen];
    const auto shown = first_of(summary_.heaviest_functions, kFunctions);
    if (shown.empty()) return;
    title(fmt::format("{} by {}{}",
                      summary_.functions_are_callers ? "innermost functions of programs" : "functions",
                      safe(chosen.name), more(summary_.functions, shown.size())));
    std::vector<std::vector<std::string>> rows;
    for (const FunctionSummary& function : shown)
      rows.push_back({percent(function.weight.period, chosen.period), safe(function.name),
                      function.module.empty() ? "[unknown]" : safe(function.module)});
    write_rows(out_, std::move(rows), {false, true, true}, room_);
  }

  void write_waits() {
    if (!summary_.waits || summary_.waits->waits == 0) return;
    const WaitsSummary& waits = *summary_.waits;
    title(fmt::format("waits: {}, {} in all, the longest {}", waits.waits,
                      quantity_text(static_cast<double>(waits.time), "ns"),
                      quantity_text(static_cast<double>(waits.longest), "ns")));
    std::vector<std::vector<std::string>> rows;
    for (const WaitSummary& row : first_of(waits.heaviest, kWaits))
      rows.push_back({quantity_text(static_cast<double>(row.time), "ns"),
                      count_of(row.waits, "wait", "waits"),
                      safe(row.comm) + (row.function.empty() ? "" : " in " + safe(row.function))});
    write_rows(out_, std::move(rows), {false, false, true}, room_);
  }

  void write_fields() {
    if (summary_.fields.empty()) return;
    const auto shown = first_of(summary_.fields, kFields);
    title("fields" + more(summary_.fields.size(), shown.size()));
    std::vector<std::vector<std::string>> rows{{"", "count", "min", "median", "p99", "max"}};
    for (const FieldSummary& field : shown) {
      const Summary& values = field.values;
      const std::string_view below = field.has_slots ? "<" : "";
      rows.push_back({safe(summary_.events[field.event].name) + ": " + safe(field.name),
                      std::to_string(values.count()), amount(values.least(), field.unit),
                      fmt::format("{}{}", below, amount(values.percentile(50), field.unit)),
                      fmt::format("{}{}", below, amount(values.percentile(99), field.unit)),
                      fmt::format("{}{}", below, amount(values.largest(), field.unit))});
    }
    write_rows(out_, std::move(rows), {true, false, false, false, false, false}, room_);
  }

  void write_next() {
    title("next");
    for (const NextCommand& next : CommandChooser(summary_, input_).choose()) {
      out_.text("  " + next.command);
      // The command is never cut, so that it can be copied; its comment is left out if the line is too long.
      const std::string why = "  # " + next.why;
      const std::size_t used = 2 + next.command.size();
      if (room_ == 0 || used + why.size() <= room_) out_.text(why);
      out_.character('\n');
    }
  }

  Session& session_;
  const CaptureSummary& summary_;
  TextOutput& out_;
  std::string input_;
  Names names_;
  std::size_t room_;
};

void describe_capture(JsonFields& to, Session& session, const std::string& input) {
  const format::Environment& host = session.features().environment;
  to.begin_object("capture");
  to.text("file", input);
  if (!session.layout().is_pipe) to.number("bytes", session.layout().file_size);
  for (const auto& [name, value] :
       {std::pair("hostname", &host.hostname), std::pair("os_release", &host.os_release),
        std::pair("arch", &host.arch), std::pair("recorder_version", &host.version),
        std::pair("cpu_description", &host.cpu_description)}) {
    if (*value) to.text(name, **value);
  }
  if (host.cpus_online) to.number("cpus_online", *host.cpus_online);
  if (!host.command_line.empty()) {
    to.begin_list("command_line");
    for (const std::string& word : host.command_line) to.text("", word);
    to.end_list();
  }
  to.end_object();
}

void describe_events(JsonFields& to, const CaptureSummary& summary) {
  to.begin_list("events");
  for (const EventSummary& event : summary.events) {
    to.begin_object({});
    to.text("event", event.name);
    to.number("samples", event.samples);
    to.number("period", event.period);
    to.text("unit", event.unit);
    if (event.frequency) to.number("frequency", *event.frequency);
    to.flag("has_stacks", event.has_stacks);
    to.end_object();
  }
  to.end_list();
}

void describe_rows(JsonFields& to, const CaptureSummary& summary) {
  if (summary.chosen) to.text("by_event", summary.events[*summary.chosen].name);
  to.number("process_count", summary.processes);
  to.begin_list("processes");
  for (const ProcessSummary& process : summary.heaviest_processes) {
    to.begin_object({});
    to.signed_number("pid", static_cast<std::int32_t>(process.pid));
    to.text("comm", process.comm);
    to.number("threads", process.threads);
    to.number("samples", process.samples);
    to.number("period", process.period);
    to.end_object();
  }
  to.end_list();
  to.number("function_count", summary.functions);
  to.flag("functions_are_callers", summary.functions_are_callers);
  to.begin_list("functions");
  for (const FunctionSummary& function : summary.heaviest_functions) {
    to.begin_object({});
    to.text("symbol", function.name);
    to.text("dso", function.module.empty() ? "[unknown]" : function.module);
    to.number("samples", function.weight.samples);
    to.number("period", function.weight.period);
    to.end_object();
  }
  to.end_list();
}

void describe_waits(JsonFields& to, const WaitsSummary& waits) {
  to.begin_object("waits");
  to.number("count", waits.waits);
  to.number("ns", waits.time);
  to.number("longest_ns", waits.longest);
  to.begin_list("rows");
  for (const WaitSummary& row : waits.heaviest) {
    to.begin_object({});
    to.text("comm", row.comm);
    to.text("function", row.function);
    to.number("count", row.waits);
    to.number("ns", row.time);
    to.end_object();
  }
  to.end_list();
  to.end_object();
}

void describe_value(JsonFields& to, std::string_view name, const ExpressionValue& value) {
  if (value.kind == ExpressionValue::Kind::Real) return to.real(name, value.real);
  to.json(name, value.is_nothing() ? "null" : fmt::format("{}", value.whole));
}

void describe_fields(JsonFields& to, const CaptureSummary& summary) {
  to.begin_list("fields");
  for (const FieldSummary& field : summary.fields) {
    to.begin_object({});
    to.text("event", summary.events[field.event].name);
    to.text("field", field.name);
    to.text("unit", field.unit);
    to.number("count", field.values.count());
    for (const auto& [name, value] :
         {std::pair("sum", field.values.sum()), std::pair("min", field.values.least()),
          std::pair("median", field.values.percentile(50)), std::pair("p99", field.values.percentile(99)),
          std::pair("max", field.values.largest())})
      describe_value(to, name, value);
    if (field.has_slots) to.flag("in_slots", true);
    to.end_object();
  }
  to.end_list();
}

void write_json(TextOutput& out, Session& session, const CaptureSummary& summary, const std::string& input) {
  JsonFields to(out);
  to.number("tacho_summary", kVersion);
  describe_capture(to, session, input);
  to.number("samples", summary.samples);
  if (summary.time) {
    to.number("first_sample", summary.time->first);
    to.number("last_sample", summary.time->second);
  }
  to.number("lost_samples", summary.lost);
  to.flag("incomplete", session.diagnostics().incomplete());
  to.number("frames", summary.names.frames);
  to.number("named_frames", summary.names.named_frames);
  to.number("addresses", summary.names.addresses);
  to.number("named_addresses", summary.names.named_addresses);
  describe_events(to, summary);
  describe_rows(to, summary);
  if (summary.waits) describe_waits(to, *summary.waits);
  describe_fields(to, summary);
  to.begin_list("next");
  for (const NextCommand& next : CommandChooser(summary, input).choose()) {
    to.begin_object({});
    to.text("command", next.command);
    to.text("why", next.why);
    to.end_object();
  }
  to.end_list();
  to.finish();
  out.character('\n');
}

Result<Shown> show(Session& session, TextOutput& out, const Options& options) {
  read_head(session);
  const std::size_t most = options.as_json ? kRowsInJson : std::max(kProcesses, kFunctions);
  const CaptureSummary summary = summarize(
      session, most, options.as_json ? CountedAddresses::FramesAndAddresses : CountedAddresses::Frames,
      [&](Sink& sink) { run_with_progress(session, sink, out); });
  options.as_json ? write_json(out, session, summary, options.reading.session.input)
                  : SummaryText(session, summary, options, out).write();
  Shown shown(Symbols::NotUsed);
  if (summary.late > 0) shown.notes.push_back("tacho summary: " + late_events_text(summary.late));
  return shown;
}

}  // namespace

Result<cli::ExitStatus> run_summary(const std::vector<std::string>& arguments) {
  Options options;
  return run_view(describe(options), arguments, options.reading,
                  [&options](Session& session, TextOutput& out) { return show(session, out, options); });
}

}  // namespace tacho::report
