// tacho heatmap: shows how values are spread over time, and explains a part of that map.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string_view>

#include "cli/expression.h"
#include "cli/message_text.h"
#include "report/commands.h"
#include "report/filter_options.h"
#include "report/intervals.h"
#include "report/output/terminal.h"
#include "report/output/text_output.h"
#include "report/query/expressions.h"
#include "report/views/heatmap/heat_box.h"
#include "report/views/heatmap/heat_forms.h"
#include "report/views/heatmap/heat_map.h"

namespace tacho::report {
namespace {

constexpr std::size_t kSvgColumns = 200, kSvgRows = 64;
constexpr std::uint64_t kSvgOffsets = 50;            // rows of a period
constexpr std::uint64_t kPerSecond = 1'000'000'000;  // ns
constexpr std::size_t kMostTimes = 200;              // ranges that a command line holds

constexpr std::string_view kExamples =
    "Examples:\n"
    "  tacho record -e bio -a -- sleep 10 && tacho heatmap -o bio.svg\n"
    "  tacho heatmap --field lat_ns --box 12.5..12.6,1ms..2ms\n"
    "  tacho heatmap --offset --event cpu-clock -o seconds.svg\n"
    "  tacho heatmap --field period --where 'comm == \"dd\"'\n\n";

struct Options {
  ReadingOptions reading;
  HeatRequest request;
  std::string box;  // empty: a map
  std::uint64_t interval = 0, width = 0, rows = 0, top = 20;
  std::optional<std::uint64_t> step;  // of linear rows; 0: chosen
  cli::NumberUnit step_unit = cli::NumberUnit::None;
  bool is_svg = false, is_json = false;
  std::string where;  // the text of --where
  // Options that select samples and symbols, except --where and --time, as words of a command line.
  std::string selection;
};

// A value after an option's name, for a shell.
std::string option_word(std::string_view name, std::string_view value) {
  const std::string word = cli::shell_word(value);
  if (!value.starts_with('-')) return " " + std::string(name) + " " + word;
  return " " + std::string(name) + "=" + (word.starts_with("./") ? word.substr(2) : word);
}

// Makes the options from index `first` on also note their values in `options`, for the commands that the map
// and the box print.
void remember(std::vector<cli::Option>& rows, std::size_t first, Options& options) {
  constexpr std::string_view kOfThisRun[] = {"--input", "--output",    "--no-pager", "--raw-names",
                                             "--force", "--no-worker", "--time",     "--jobs"};
  for (std::size_t i = first; i < rows.size(); ++i) {
    cli::Option& row = rows[i];
    const std::string name = row.names.substr(row.names.rfind(',') + 1);
    if (std::ranges::find(kOfThisRun, name) != std::end(kOfThisRun)) continue;
    row.set = [set = row.set, name, takes = row.takes, &options](std::string_view text) -> Result<> {
      if (set)
        if (auto done = set(text); !done) return done;
      if (name == "--where") {
        options.where = text;
      } else if (takes == cli::Takes::Value) {
        options.selection += option_word(name, text);
      } else {
        options.selection += " " + name + (text.empty() ? "" : "=" + std::string(text));
      }
      return Done{};
    };
  }
}

Result<> set_step(Options& options, std::string_view text) {
  if (text == "auto") {
    options.step = 0;
    return Done{};
  }
  const auto parsed = cli::parse_expression("--linear", text);
  constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
  if (!parsed || parsed->nodes.size() != 1 || parsed->root().operation != cli::Operation::Whole ||
      parsed->root().whole == 0 || parsed->root().whole > kMost)
    return use_error(
        "--linear: '" + std::string(text) +
        "' is no height of rows: auto, or a whole number from 1 on, or one with a unit as in 100us");
  options.step = parsed->root().whole;
  options.step_unit = parsed->root().unit;
  return Done{};
}

Result<> set_rows(Options& options, std::string_view text) {
  const auto rows = cli::parse_number("--log", text, 1, std::uint64_t{1} << HeatScale::kMostBits);
  if (!rows) return rows.error();
  if (!std::has_single_bit(*rows))
    return use_error("--log: " + std::string(text) + " is none of 1, 2, 4 and 8");
  options.rows = *rows;
  return Done{};
}

void add_map_options(std::vector<cli::Option>& rows, Options& options) {
  rows.push_back(event_list_option("--event", "default: with a field the one that has it, else all",
                                   options.request.event));
  rows.push_back(
      cli::text("--field", "NAME",
                "rows are values of this field: a number of the payload or tracepoint, or period, cpu, pid "
                "or tid (default: the field tagged role:value, else the only one with a unit; without such a "
                "field, --offset is the default)",
                options.request.field));
  rows.push_back(cli::flag("--offset",
                           "columns are seconds (shorter in a capture below ten seconds, or as --interval "
                           "says), rows are parts of a second: shows events that repeat each second, and how "
                           "long they take",
                           options.request.is_offset));
  rows.push_back(interval_option(
      "length of a column: seconds, or with a unit as in 100ms (default: a length that makes 30 to 100 "
      "columns); 2, 5, 10, ... times as long if there would be more than 200 columns, or more than a line "
      "of text has",
      options.interval));
  rows.push_back(
      {"--log", cli::Takes::Value, "ROWS",
       "at most this many rows for each power of two: 1, 2, 4 or 8 (default: 8, if that makes no more than "
       "64 rows, or 32 of text)",
       [&options](std::string_view text) { return set_rows(options, text); }});
  rows.push_back(
      {"--linear", cli::Takes::Value, "STEP",
       "rows of equal height: auto, or a number, with a unit as in 100us or 4k; 2, 5, 10, ... times as high "
       "if there would be more than 64 rows, or 32 of text",
       [&options](std::string_view text) { return set_step(options, text); }});
  rows.push_back(
      cli::text("--box", "TIME,VALUE",
                "compare a part of the map with all its other samples: lists threads, functions, stacks and "
                "field values that are more frequent in it. TIME and VALUE are each a range (12.5..12.6 in "
                "seconds, without its end; 1024..2047 or 1ms..2ms, with its end; an end may be left out), or "
                "a point, which selects the box around it. The tooltips of the map show this argument",
                options.box));
  rows.push_back(cli::number("--top", "N", "with --box, at most this many rows (default: 20)", 1,
                             std::uint64_t{1} << 32, options.top));
}

void add_form_options(std::vector<cli::Option>& rows, Options& options) {
  rows.push_back(
      cli::flag("--svg",
                "write one SVG file with tooltips, which any viewer shows (default with -o FILE.svg; else "
                "text)",
                options.is_svg));
  rows.push_back(cli::flag(
      "--json",
      "write one JSON object. A map: field, unit, begin and interval (seconds), rows (low, high), boxes "
      "(column, row, count, argument of --box). A box: inside, outside, rows (kind, name, value, counts, "
      "shares, factor (null if there are none outside), g2), commands",
      options.is_json));
  rows.push_back(cli::number("--width", "N",
                             "columns of text (default: the terminal's, else 80), or px of a picture in a "
                             "viewer that runs no script (default: 1200)",
                             40, 100'000, options.width));
}

cli::CommandLine describe(Options& options) {
  auto line =
      command_line("heatmap",
                   "Shows how values are spread over time: columns are times, rows are values of a field or "
                   "parts of each second, and a box is darker, or a higher digit, the more samples it has. "
                   "As text, or with -o FILE.svg as a picture. --box lists what is more frequent in a box.");
  line.epilog = std::string(kExamples) +
                "Rows of --box are ranked by G2, the log-likelihood ratio of the counts inside and outside: "
                "the larger,\n"
                "the less likely chance put so many samples into the box. Rows with G2 below 10.83, which "
                "chance exceeds\n"
                "once in a thousand, and rows that are less frequent inside than outside are left out. "
                "'only': no sample\n"
                "outside has it. Of functions with the same counts the deepest one is shown.\n\n" +
                line.epilog;
  auto& rows = line.options;
  std::size_t first = rows.size();
  add_reading_options(rows, options.reading);
  remember(rows, first, options);
  add_map_options(rows, options);
  add_form_options(rows, options);
  first = rows.size();
  add_filter_options(rows, options.reading.session.filter);
  remember(rows, first, options);
  return line;
}

// The step of --linear in the field's unit: 100us are 100 for a field in microseconds.
Result<std::uint64_t> step_of(const Options& options, const HeatSource& source) {
  if (options.step_unit == cli::NumberUnit::None) return *options.step;
  const auto unit = field_unit(source.unit());
  if (!unit || unit->kind != options.step_unit || *options.step % unit->size != 0)
    return use_error("--linear: rows of '" + source.name() + "' are whole numbers" +
                     (source.unit().empty() ? " without a unit" : " of " + source.unit()));
  return *options.step / unit->size;
}

// The width of a line of text.
std::size_t room_of(const Options& options) {
  if (options.width != 0) return options.width;
  return options.reading.terminal_room() != 0 ? options.reading.terminal_room() : 80;
}

Result<HeatScale> scale_of(const Options& options, const HeatSource& source) {
  const bool is_text = !options.is_svg && !options.is_json;
  HeatScale scale =
      is_text ? text_scale(source, std::max(room_of(options), kTextMargin + 10) - kTextMargin, kTextRows)
              : usual_scale(source, kSvgColumns, kSvgRows, kSvgOffsets);
  if (source.period() == 0 && options.interval != 0) scale.interval = options.interval;
  std::uint64_t step = scale.step;
  if (options.step && *options.step != 0) {
    const auto wanted = step_of(options, source);
    if (!wanted) return wanted.error();
    step = *wanted;
  }
  // Values that a program counted in slots have these as rows.
  if (source.field() != nullptr && has_slots(*source.field())) return scale;
  scale.step = step;
  scale.is_linear = scale.is_linear || options.step;
  if (options.rows != 0) {
    scale.is_linear = false;
    scale.bits = std::countr_zero(options.rows);
  }
  return scale;
}

HeatFacts facts_of(Session& session, const Options& options, const HeatSource& source) {
  HeatFacts facts;
  facts.period = source.period();
  facts.name = printable(source.name());
  facts.unit = source.unit();
  std::string events = printable(source.event_name());
  if (events.empty() && !options.request.event.empty()) events = printable(options.request.event);
  facts.title = (facts.period != 0 ? "offset in each " + period_text(facts.period) : facts.name) +
                (events.empty() ? "" : " of " + events);
  facts.notes.push_back(
      with_origin(printable(options.reading.session.input), session.features().environment));
  facts.command = "tacho heatmap" + option_word("-i", options.reading.session.input);
  if (!options.request.event.empty()) facts.command += option_word("--event", options.request.event);
  facts.command += source.is_offset() ? " --offset" : option_word("--field", source.name());
  if (facts.period != 0 && facts.period != kPerSecond)
    facts.command += " --interval " + seconds_text(facts.period);
  facts.command += options.selection;
  if (const std::string& times = options.reading.session.filter.time_text; !times.empty())
    facts.command += option_word("--time", times);
  if (!options.where.empty()) facts.command += option_word("--where", options.where);
  return facts;
}

// The times of a box, and of `chosen` if that is not empty, as ranges of --time. nullopt: there are too many.
std::optional<std::string> times_of(const HeatBox& box, const HeatFacts& facts,
                                    const std::vector<Filter::TimeRange>& chosen) {
  std::vector<Filter::TimeRange> ranges;
  const Filter::TimeRange all{box.from, box.until == kEver ? kEver : box.until - 1};
  const std::uint64_t period = facts.period;
  const bool is_part = period != 0 && (box.low > 0 || box.high < Int128{period} - 1);
  if (!is_part) {
    ranges.push_back(all);
  } else {
    if (all.last / period - all.first / period > kMostTimes) return std::nullopt;
    for (std::uint64_t number = all.first / period; number <= all.last / period; ++number) {
      const Filter::TimeRange part{
          std::max(all.first, number * period + static_cast<std::uint64_t>(box.low)),
          std::min(all.last, number * period + static_cast<std::uint64_t>(box.high))};
      if (part.first <= part.last) ranges.push_back(part);
    }
  }
  if (ranges.size() * std::max<std::size_t>(chosen.size(), 1) > kMostTimes) return std::nullopt;
  std::string text;
  for (const Filter::TimeRange& range : ranges) {
    for (const Filter::TimeRange& other : chosen.empty() ? std::vector<Filter::TimeRange>(1) : chosen) {
      const std::uint64_t first = std::max(range.first, other.first), last = std::min(range.last, other.last);
      if (first > last) continue;
      text += (text.empty() ? "" : " ") + (first == 0 ? "" : seconds_text(first)) + "," +
              (last == kEver ? "" : seconds_text(last));
    }
  }
  return text;
}

// Options that select the box's samples in other commands; nullopt: --time and --where cannot.
std::optional<std::string> samples_of(const HeatBox& box, Session& session, const Options& options,
                                      const HeatSource& source, const HeatFacts& facts, const BoxSink& sink) {
  std::string text = option_word("-i", options.reading.session.input);
  std::string events = source.event_name();
  for (std::size_t i = 0; source.event_name().empty() && i < sink.events_inside().size(); ++i)
    if (sink.events_inside()[i]) events += (events.empty() ? "" : ",") + session.events()[i].name;
  text += option_word("--event", events) + options.selection;
  const auto times = times_of(box, facts, session.filter().times);
  if (!times) return std::nullopt;
  if (!times->empty() && *times != ",") text += option_word("--time", *times);
  std::string where = source.condition(box.low, box.high);
  const bool is_bounded = box.low != kLowest || box.high != kHighest;
  if (where.empty() && is_bounded && !source.is_offset()) return std::nullopt;
  if (!options.where.empty()) where = where.empty() ? options.where : "(" + options.where + ") && " + where;
  if (!where.empty()) text += option_word("--where", where);
  return text;
}

void report_timeless(const std::string& timeless, const Options& options, Shown& shown) {
  if (timeless.empty()) return;
  shown.notes.push_back("tacho: " + printable(options.reading.session.input) + ": " + printable(timeless));
  shown.status = cli::kIncomplete;
}

// A session is read once, so the map in which a point is looked up is read by a session of its own.
Result<HeatMap> read_map(SessionOptions wanted, TextOutput& out, const Options& options) {
  wanted.wants_stacks = false;
  if (!options.where.empty()) {
    auto condition = parse_where("--where", options.where);
    if (!condition) return std::move(condition.error());
    wanted.filter.condition = std::move(*condition);
  }
  auto session = Session::open(std::move(wanted));
  if (!session) return std::move(session.error());
  if (session->has_condition())
    if (auto bound = session->bind_condition(); !bound) return std::move(bound.error());
  HeatSource source;
  if (auto found = source.find_events(options.request, *session); !found) return std::move(found.error());
  const auto scale = scale_of(options, source);
  if (!scale) return scale.error();
  MapSink sink(*session, source, *scale);
  run_with_progress(*session, sink, out);
  return sink.grid().finish();
}

Result<Shown> show_box(Session& session, const SessionOptions& wanted, TextOutput& out,
                       const Options& options, HeatSource& source) {
  HeatFacts facts = facts_of(session, options, source);
  auto argument = parse_box(options.box, facts);
  if (!argument) return std::move(argument.error());
  HeatBox box = argument->box;
  if (argument->is_time_point || argument->is_value_point) {
    if (session.layout().is_pipe || wanted.input == "-")
      return use_error(
          "--box: a point needs the whole map first, but a pipe is read once; give ranges, as in the map's "
          "tooltips, or a file");
    const auto map = read_map(wanted, out, options);
    if (!map) return map.error();
    const auto found = find_box(*argument, *map, facts);
    if (!found) return found.error();
    box = *found;
  }
  BoxSink sink(session, source, box);
  run_with_progress(session, sink, out);
  const auto findings = sink.findings(options.is_json ? Names::Raw : options.reading.names);
  BoxFacts ranking{box, {}, {}, options.top, options.reading.room()};
  if (sink.all().inside > 0) {
    if (const auto samples = samples_of(box, session, options, source, facts, sink)) {
      if (sink.has_stacks())
        ranking.flamegraph = "tacho flamegraph" + *samples + " --weight samples -o box.svg";
      ranking.samples = "tacho script" + *samples;
    }
  }
  (options.is_json ? write_box_json : write_box_text)(out, facts, ranking, sink.all(), findings);
  Shown shown(Symbols::Used);
  report_timeless(sink.samples_without_times(), options, shown);
  for (const std::string& name : sink.overfull())
    shown.notes.push_back("tacho heatmap: '" + printable(name) +
                          "' has more values than are ranked; the last ones are left out");
  if (sink.all().inside > 0 && sink.all().outside == 0)
    shown.notes.emplace_back(
        "tacho heatmap: all samples are in this box, so there is nothing to compare them with");
  if (sink.all().inside == 0) shown.notes.emplace_back("tacho heatmap: there are no samples in this box");
  return shown;
}

// Whether the locale, and so the terminal, has characters beyond ASCII.
bool is_utf8() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale(value);
    const auto has = [locale](std::string_view part) { return locale.find(part) != std::string_view::npos; };
    return has("UTF-8") || has("utf-8") || has("UTF8") || has("utf8");
  }
  return false;
}

Result<Shown> show_map(Session& session, TextOutput& out, const Options& options, const HeatSource& source) {
  const auto scale = scale_of(options, source);
  if (!scale) return scale.error();
  MapSink sink(session, source, *scale);
  run_with_progress(session, sink, out);
  const HeatMap map = sink.grid().finish();
  HeatFacts facts = facts_of(session, options, source);
  if (!map.is_empty()) facts.notes.push_back(map_text(map));
  if (options.is_json) {
    write_heat_json(out, map, facts);
  } else if (options.is_svg) {
    facts.title = "Heat map: " + facts.title;
    write_heat_svg(out, map, facts, static_cast<unsigned>(options.width == 0 ? 1200 : options.width));
  } else {
    const bool has_shades = has_colour(Colour::Auto, out.is_for_person()) && is_utf8();
    write_heat_text(out, map, facts, has_shades ? HeatCells::Shades : HeatCells::Digits, room_of(options));
  }
  Shown shown(Symbols::NotUsed);
  report_timeless(sink.samples_without_times(), options, shown);
  if (source.is_offset_by_default())
    shown.notes.emplace_back("tacho heatmap: no payload has a default field, so rows are parts of each " +
                             period_text(source.period()) + "; --field NAME shows a field, or period");
  if (map.is_empty())
    shown.notes.emplace_back("tacho heatmap: the capture has no samples, or none that the options select");
  return shown;
}

Result<Shown> show(Session& session, const SessionOptions& wanted, TextOutput& out, const Options& options) {
  read_head(session);
  HeatSource source;
  if (auto found = source.find_events(options.request, session); !found)
    return std::move(found.error()).in(printable(options.reading.session.input));
  return options.box.empty() ? show_map(session, out, options, source)
                             : show_box(session, wanted, out, options, source);
}

Result<> check(Options& options) {
  const std::string& output = options.reading.output;
  options.is_svg = options.is_svg || (output.ends_with(".svg") && !options.is_json);
  if (options.request.is_offset && !options.request.field.empty())
    return use_error(
        "--offset and --field cannot be combined: rows are parts of a second or values of a field");
  if (options.request.is_offset && (options.step || options.rows != 0))
    return use_error("--offset: rows are parts of a second; --linear and --log are for values of a field");
  if (options.step && options.rows != 0) return use_error("--linear and --log cannot be combined");
  if (options.is_svg && options.is_json) return use_error("--svg and --json cannot be combined");
  if (options.is_svg && !options.box.empty())
    return use_error("--box has no --svg form; its text has the command for a flame graph of the box");
  if (options.is_svg && output.empty() && ::isatty(STDOUT_FILENO) != 0)
    return use_error("a picture cannot be shown in a terminal; give a file: -o map.svg");
  if (options.is_svg) options.reading.paging = Paging::Never;
  options.request.period = options.interval;
  // A box of offsets is in a map of seconds, unless --interval is given.
  if (!options.box.empty() && options.interval == 0) options.request.period = kPerSecond;
  options.request.input = options.reading.session.input;
  return Done{};
}

}  // namespace

Result<cli::ExitStatus> run_heatmap(const std::vector<std::string>& arguments) {
  Options options;
  return run_command(describe(options), arguments, [&options]() -> Result<cli::ExitStatus> {
    if (auto checked = check(options); !checked) return checked.error();
    options.reading.session.wants_stacks = !options.box.empty();
    return show_session_beside(options.reading,
                               [&options](Session& session, const SessionOptions& wanted, TextOutput& out) {
                                 return show(session, wanted, out, options);
                               });
  });
}

}  // namespace tacho::report
