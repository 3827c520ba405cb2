// tacho hist: the distribution of a field's values, a histogram for each group.
#include <bit>
#include <utility>

#include "cli/absent_options.h"
#include "report/commands.h"
#include "report/filter_options.h"
#include "report/intervals.h"
#include "report/samples/filter.h"
#include "report/views/hist/hist_sink.h"

namespace tacho::report {
namespace {

constexpr std::uint64_t kMostRowsOfPower = std::uint64_t{1} << Distribution::kMostBits;

Result<> set_rows(HistOptions& options, std::string_view text) {
  auto rows = cli::parse_number("--log", text, 1, kMostRowsOfPower);
  if (!rows) return std::move(rows.error());
  if (!std::has_single_bit(*rows)) return use_error("--log: " + std::string(text) + " is no power of two");
  options.rows = *rows;
  return Done{};
}

Result<> set_percentiles(HistOptions& options, std::string_view text) {
  options.percentiles.clear();
  for (const std::string& name : parse_name_list(text)) {
    const auto percent = parse_percentage(std::string_view(name).substr(name.starts_with('p') ? 1 : 0));
    if (!percent)
      return use_error("--percentiles: '" + name + "' is no number from 0 to 100, as in 50,99,99.9");
    options.percentiles.push_back(*percent);
  }
  return Done{};
}

void add_value_options(std::vector<cli::Option>& rows, HistOptions& options) {
  rows.push_back(
      event_list_option("--event", "only one of these may have the field; default: all", options.event));
  rows.push_back(cli::text("--field", "NAME",
                           "the field (default: the one with role:value, else the only one with a unit)",
                           options.field));
  rows.push_back(cli::text("--between", "FIRST,SECOND",
                           "instead of a field, the time (ns) from each event FIRST to the next event SECOND "
                           "with the same --key; --by takes fields of SECOND",
                           options.pairs.events));
  rows.push_back({"--key", cli::Takes::Value, "FIELD[,FIELD]",
                  "the field that two events of --between have in common, and its name in SECOND if that "
                  "differs; several as dev+sector (default: the thread)",
                  [&options](std::string_view text) -> Result<> {
                    options.pairs.keys = parse_name_list(text);
                    return Done{};
                  }});
  rows.push_back(cli::text(
      "--by", "KEY[,KEY]",
      "a histogram for each value of these: other fields of the event, or comm, pid, tid, cpu (sample.comm "
      "where a field has that name); none: a single histogram (default: fields with role:function or "
      "role:key)",
      options.by));
}

void add_form_options(std::vector<cli::Option>& rows, HistOptions& options) {
  rows.push_back({"--linear", cli::Takes::Value, "STEP",
                  "rows of equal width instead of powers of two: a number, or with a unit as in 100us or 4k",
                  [&options](std::string_view text) -> Result<> {
                    auto width = parse_row_width(text);
                    if (!width) return std::move(width.error());
                    options.step = *width;
                    return Done{};
                  }});
  rows.push_back(
      {"--log", cli::Takes::Value, "ROWS",
       "rows for each power of two: 1, 2, 4, 8, 16, 32 or 64 (default: 1, with 0 and 1 in one row)",
       [&options](std::string_view text) { return set_rows(options, text); }});
  rows.push_back(
      {"--percentiles", cli::Takes::Value, "P[,P]",
       "print percentiles below each histogram, as in 50,99,99.9: exact to 1 part in 128; for values counted "
       "in slots, the last value of a slot",
       [&options](std::string_view text) { return set_percentiles(options, text); }});
  rows.push_back(
      interval_option("one histogram for each interval of this length: seconds, or as in 100ms; for values "
                      "counted in the kernel, a multiple of the recorder's --interval. With --follow, also "
                      "one of the whole at the end",
                      options.interval));
  rows.push_back(cli::number("--top", "N",
                             "only the N groups of --by with the most values, and the N most frequent texts",
                             1, std::uint64_t{1} << 32, options.top));
}

cli::CommandLine describe(HistOptions& options) {
  auto line = command_line(
      "hist",
      "Shows the distribution of a value in powers of two: a field of a BPF event's payload or of a "
      "tracepoint, or the time between two events. Texts and enums are counted by value, the most frequent "
      "first.");
  auto& rows = line.options;
  add_reading_options(rows, options.reading);
  rows.push_back(follow_option(options.reading));
  add_value_options(rows, options);
  add_form_options(rows, options);
  rows.push_back(
      flag("--json",
           "one JSON object a histogram: event, field, unit, begin (with --interval), keys, count, rows "
           "(low, high, count of those with values) or values (value, count), and percentiles as p50",
           options.is_json));
  rows.push_back(wide_option("-w,--wide", options.reading));
  add_filter_options(rows, options.reading.session.filter);
  static constexpr cli::AbsentOption kAbsent[] = {{"--csv", cli::Takes::Nothing,
                                                   "a histogram is JSON with --json; tacho table --csv gives "
                                                   "counts, sums and percentiles of the same field"}};
  cli::add_absent_options(rows, kAbsent);
  line.epilog =
      "Examples:\n"
      "  tacho hist --percentiles 50,99 --by comm\n"
      "  tacho hist --between raw_syscalls:sys_enter,raw_syscalls:sys_exit --by id --top 5\n"
      "  tacho hist --between sched:sched_waking,sched:sched_switch --key pid,next_pid\n\n" +
      line.epilog;
  return line;
}

Result<> check(const HistOptions& options) {
  if (options.pairs.events.empty() && !options.pairs.keys.empty())
    return use_error("--key says which events of --between FIRST,SECOND belong together");
  if (!options.pairs.events.empty() && !(options.event.empty() && options.field.empty()))
    return use_error("--between shows the time between two events; leave --event and --field out");
  if (options.step.value != 0 && options.rows != 0) return use_error("--linear and --log cannot be combined");
  return Done{};
}

Result<Shown> show(Session& session, TextOutput& out, const HistOptions& options) {
  if (auto checked = check(options); !checked) return std::move(checked.error());
  HistSink sink(session, out, options);
  run_with_progress(session, sink, out, [&sink] { sink.write_finished_interval(); });
  const std::string input = printable(options.reading.session.input);
  if (sink.error) return std::move(*sink.error).in(input);
  sink.finish();
  Shown shown(Symbols::NotUsed);
  shown.notes = sink.notes();
  if (const std::string timeless = sink.samples_without_times(); !timeless.empty()) {
    shown.notes.push_back("tacho: " + input + ": " + printable(timeless));
    shown.status = cli::kIncomplete;
  } else if (sink.is_empty()) {
    shown.notes.insert(shown.notes.begin(),
                       "tacho: " + input +
                           (options.pairs.events.empty() ? ": no sample of that event"
                                                         : ": no pair of these events with equal keys"));
  }
  return shown;
}

}  // namespace

Result<cli::ExitStatus> run_hist(const std::vector<std::string>& arguments) {
  HistOptions options;
  options.reading.session.wants_stacks = false;
  return run_view(describe(options), arguments, options.reading,
                  [&options](Session& session, TextOutput& out) { return show(session, out, options); });
}

}  // namespace tacho::report
