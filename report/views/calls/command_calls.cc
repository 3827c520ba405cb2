// tacho calls: every call of a program's functions, with its duration.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "report/command.h"
#include "report/commands.h"
#include "report/filter_options.h"
#include "report/output/field_sinks.h"
#include "report/output/terminal.h"
#include "report/output/text_output.h"
#include "report/views/calls/call_list.h"
#include "report/views/calls/call_values.h"

namespace tacho::report {
namespace {

// The forms of the output: calls one after another, a call graph, a table by function, JSON, Chrome's trace.

enum class CallForm : std::uint8_t { Replay, Graph, Report, Json, Chrome };

constexpr std::size_t kDuration = 10, kThread = 7, kCount = 9;  // widths
constexpr std::size_t kIndent = 2, kDeepest = 64;               // deeper levels are indented no further

// "1.234 us", "12.001 ms": in the unit that gives one to three digits before the point.
std::string duration_text(std::uint64_t nanoseconds) {
  constexpr std::uint64_t kMillisecond = 1'000'000, kSecond = 1'000'000'000;
  const auto value = static_cast<double>(nanoseconds);
  if (nanoseconds < kMillisecond) return fmt::format("{:.3f} us", value / 1e3);
  if (nanoseconds < kSecond) return fmt::format("{:.3f} ms", value / 1e6);
  return fmt::format("{:.3f} s ", value / 1e9);
}

// Writes the end of a line, from column `before` on.
struct LineEnd {
  std::size_t room = 0;  // the width of a line; 0: no limit
  void write(TextOutput& out, std::size_t before, std::size_t level, const std::string& text) const {
    const std::size_t indent = kIndent * std::min(level, kDeepest);
    out.blanks(indent);
    constexpr std::size_t kLeast = 20;
    const std::size_t width = std::max(room, before + indent + kLeast) - before - indent;
    out.text(room == 0 ? text : cut_in_the_middle(text, width));
    out.character('\n');
    out.line_end();
  }
};

void line_end(TextOutput& out) {
  out.character('\n');
  out.line_end();
}

// A call without callees is one line; others have a second line at their end, with the duration. `values`
// null: without arguments and return values.
void write_replay(TextOutput& out, const CallList& list, const Callers& tree, const CallValues* values,
                  Names names, LineEnd line) {
  const auto returned = [&](const Call& call) {
    const std::string text = values == nullptr ? std::string() : values->returned(call);
    return text.empty() ? text : " = " + text + ';';
  };

  out.padded("DURATION", kDuration);
  out.padded("TID", kThread + 1);
  out.text("  FUNCTION\n");
  for (const CallStep& step : call_steps(list, tree)) {
    const Call& call = list.calls()[step.call];
    const bool opens = !step.is_end && tree.has_callees[step.call];
    out.padded(opens ? std::string() : duration_text(call.end - call.begin), kDuration);
    out.signed_decimal(static_cast<std::int32_t>(call.tid), kThread + 1);
    out.blanks(2);
    std::string text = printable(list.text(call.name), names);
    if (step.is_end) {
      text = '}' + returned(call) + " /* " + text + " */";
    } else {
      text += '(' + (values == nullptr ? std::string() : values->arguments(call)) + ')';
      const std::string result = opens ? " {" : returned(call);
      text += result.empty() ? ";" : result;
    }
    line.write(out, kDuration + kThread + 3, step.level, text);
    if (out.is_done()) return;
  }
}

// A node of the call graph: the calls of one function from the same callers.
struct Node {
  std::uint64_t total = 0, calls = 0;
  std::map<std::uint32_t, std::uint32_t> callees;  // by name: number of the node
};

void write_node(TextOutput& out, const CallList& list, const std::vector<Node>& nodes, std::uint32_t name,
                std::uint32_t number, Names names, LineEnd line) {
  struct Open {
    std::uint32_t name, number;
    std::size_t level;
  };
  // Without recursion: the capture determines the depth.
  std::vector<Open> open{{name, number, 0}};
  while (!open.empty() && !out.is_done()) {
    const Open next = open.back();
    open.pop_back();
    const Node& node = nodes[next.number];
    out.padded(duration_text(node.total), kDuration);
    out.decimal(node.calls, kCount + 1);
    out.blanks(2);
    line.write(out, kDuration + kCount + 3, next.level, printable(list.text(next.name), names));
    std::vector<std::pair<std::uint32_t, std::uint32_t>> callees(node.callees.begin(), node.callees.end());
    std::ranges::stable_sort(
        callees, [&](const auto& a, const auto& b) { return nodes[a.second].total < nodes[b.second].total; });
    for (const auto& [callee, at] : callees) open.push_back({callee, at, next.level + 1});
  }
}

void write_graph(TextOutput& out, const CallList& list, const Callers& tree, Names names, LineEnd line) {
  std::vector<Node> nodes(1);  // the first is the root
  std::vector<std::uint32_t> node_of(list.calls().size());
  for (std::uint32_t i = 0; i < list.calls().size(); ++i) {
    const Call& call = list.calls()[i];
    const std::uint32_t above = tree.callers[i] == Callers::kNone ? 0 : node_of[tree.callers[i]];
    const auto [entry, is_new] =
        nodes[above].callees.try_emplace(call.name, static_cast<std::uint32_t>(nodes.size()));
    node_of[i] = entry->second;
    if (is_new) nodes.emplace_back();
    nodes[node_of[i]].total += call.end - call.begin;
    ++nodes[node_of[i]].calls;
  }
  out.padded("TOTAL", kDuration);
  out.padded("CALLS", kCount + 1);
  out.text("  FUNCTION\n");
  std::vector<std::pair<std::uint32_t, std::uint32_t>> roots(nodes[0].callees.begin(),
                                                             nodes[0].callees.end());
  std::ranges::stable_sort(
      roots, [&](const auto& a, const auto& b) { return nodes[a.second].total > nodes[b.second].total; });
  for (const auto& [name, number] : roots) write_node(out, list, nodes, name, number, names, line);
}

struct FunctionRow {
  std::uint64_t total = 0, self = 0, calls = 0, longest = 0;
};

// A function's total includes its callees, and counts recursive calls once.
void write_report(TextOutput& out, const CallList& list, const Callers& tree, Names names, LineEnd line) {
  std::map<std::uint32_t, FunctionRow> rows;
  for (std::uint32_t i = 0; i < list.calls().size(); ++i) {
    const Call& call = list.calls()[i];
    const std::uint64_t duration = call.end - call.begin;
    FunctionRow& row = rows[call.name];
    if (!tree.recurses[i]) row.total += duration;
    row.self += duration - std::min(duration, tree.in_callees[i]);
    row.longest = std::max(row.longest, duration);
    ++row.calls;
  }
  std::vector<std::pair<std::uint32_t, FunctionRow>> order(rows.begin(), rows.end());
  std::ranges::stable_sort(order,
                           [](const auto& a, const auto& b) { return a.second.total > b.second.total; });
  for (const std::string_view head : {"TOTAL", "SELF", "LONGEST"})
    out.padded(head, kDuration + (head == "TOTAL" ? 0 : 1));
  out.padded("CALLS", kCount + 1);
  out.text("  FUNCTION\n");
  for (const auto& [name, row] : order) {
    out.padded(duration_text(row.total), kDuration);
    out.padded(duration_text(row.self), kDuration + 1);
    out.padded(duration_text(row.longest), kDuration + 1);
    out.decimal(row.calls, kCount + 1);
    out.blanks(2);
    line.write(out, 3 * kDuration + kCount + 5, 0, printable(list.text(name), names));
  }
}

void describe_values(JsonFields& fields, const CallList& list, const Call& call) {
  for (const CallValue& value : list.values(call)) {
    if (value.is_text() || value.is == CallValue::Is::Unread) continue;
    if (value.is_number)
      fields.signed_number(list.text(value.name), static_cast<std::int64_t>(value.value));
    else
      fields.hex(list.text(value.name), value.value);
  }
}

void write_json(TextOutput& out, const CallList& list, const CallValues* values) {
  for (const Call& call : list.calls()) {
    JsonFields fields(out);
    fields.text("function", list.text(call.name));
    fields.text("comm", list.text(call.comm));
    fields.signed_number("pid", static_cast<std::int32_t>(call.pid));
    fields.signed_number("tid", static_cast<std::int32_t>(call.tid));
    fields.number("depth", call.depth);
    fields.number("begin", call.begin);
    fields.number("duration", call.end - call.begin);
    describe_values(fields, list, call);
    if (values != nullptr) values->describe_in_order(fields, call);
    fields.finish();
    line_end(out);
    if (out.is_done()) return;
  }
}

// The JSON format of chrome://tracing and Perfetto: complete events, in microseconds.
void write_chrome(TextOutput& out, const CallList& list, const CallValues* values) {
  const auto microseconds = [](std::uint64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); };
  out.text("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
  std::set<std::pair<std::uint32_t, std::uint32_t>> threads;
  bool is_first = true;
  for (const Call& call : list.calls()) {
    if (threads.insert({call.pid, call.tid}).second) {
      if (!is_first) out.text(",\n");
      is_first = false;
      JsonFields thread(out);
      thread.text("name", "thread_name");
      thread.text("ph", "M");
      thread.signed_number("pid", static_cast<std::int32_t>(call.pid));
      thread.signed_number("tid", static_cast<std::int32_t>(call.tid));
      thread.begin_object("args");
      thread.text("name", list.text(call.comm));
      thread.end_object();
      thread.finish();
    }
    out.text(",\n");
    JsonFields fields(out);
    fields.text("name", list.text(call.name));
    fields.text("ph", "X");
    fields.json("ts", microseconds(call.begin));
    fields.json("dur", microseconds(call.end - call.begin));
    fields.signed_number("pid", static_cast<std::int32_t>(call.pid));
    fields.signed_number("tid", static_cast<std::int32_t>(call.tid));
    fields.begin_object("args");
    if (values != nullptr && values->prototype(call) != nullptr) {
      values->describe_by_name(fields, call);
    } else {
      describe_values(fields, list, call);
    }
    fields.end_object();
    fields.finish();
    out.line_end();
    if (out.is_done()) return;
  }
  out.text("\n]}\n");
}

struct Options {
  ReadingOptions reading;
  std::optional<CallForm> form;
  std::optional<std::uint64_t> object;
  bool leaves_values_out = false;
};

cli::Option form_option(Options& options, std::string_view name, std::string_view help, CallForm form) {
  return {std::string(name), cli::Takes::Nothing, "", std::string(help),
          [&options, form](std::string_view) -> Result<> {
            if (options.form && *options.form != form)
              return use_error("--replay, --graph, --report, --json and --chrome: take one of them");
            options.form = form;
            return Done{};
          }};
}

Result<> set_object(Options& options, std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with("0x")) digits.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc{} || end != digits.data() + digits.size())
    return use_error("--object: '" + std::string(text) + "' is no address, as 0x55d0c8a012a0");
  options.object = value;
  return Done{};
}

cli::CommandLine describe(Options& options) {
  auto line =
      command_line("calls",
                   "Shows function calls that -e calls, fastcalls or follow recorded: one after another with "
                   "their durations, as a call graph, or by function.");
  auto& rows = line.options;
  add_reading_options(rows, options.reading);
  rows.push_back(form_option(options, "--replay",
                             "calls in the order of time, indented below their callers (the default)",
                             CallForm::Replay));
  rows.push_back(form_option(options, "--graph",
                             "call graph: one line for all calls of a function from the same callers, with "
                             "their total time",
                             CallForm::Graph));
  rows.push_back(form_option(options, "--report",
                             "a line for each function: time with callees, without callees, longest call, "
                             "number of calls",
                             CallForm::Report));
  rows.push_back(
      form_option(options, "--json", "one JSON object a call, times in nanoseconds", CallForm::Json));
  rows.push_back(
      form_option(options, "--chrome", "JSON for chrome://tracing and Perfetto", CallForm::Chrome));
  rows.push_back(
      {"--object", cli::Takes::Value, "ADDR",
       "only calls with this address among their arguments (with -e follow: calls on this object), or that "
       "returned it: the life of one object, through functions and threads",
       [&options](std::string_view text) { return set_object(options, text); }});
  rows.push_back(flag("--no-values", "leave out arguments and return values", options.leaves_values_out));
  rows.push_back(wide_option("-w,--wide", options.reading));
  add_filter_options(rows, options.reading.session.filter);
  line.epilog.insert(0,
                     "Examples:\n"
                     "  tacho calls calls.data             each call below its caller, in the order of time\n"
                     "  tacho calls calls.data --report    by function: how many, how long\n"
                     "  tacho calls calls.data --graph     by the way of calls\n"
                     "\n");
  return line;
}

Result<Shown> show(Session& session, TextOutput& out, const Options& options) {
  const std::string input = printable(options.reading.session.input);
  read_head(session);
  const CallTypes types(session.features());
  CallList list(session, options.object, types);
  if (auto found = list.find_events(); !found) return std::move(found.error()).in(input);
  run_with_progress(session, list, out);
  list.sort();
  const CallValues all_values(types, list);
  const CallValues* const values = options.leaves_values_out ? nullptr : &all_values;
  const Callers tree = find_callers(list);
  const LineEnd line{options.reading.room()};
  switch (options.form.value_or(CallForm::Replay)) {
    case CallForm::Replay:
      write_replay(out, list, tree, values, options.reading.names, line);
      break;
    case CallForm::Graph:
      write_graph(out, list, tree, options.reading.names, line);
      break;
    case CallForm::Report:
      write_report(out, list, tree, options.reading.names, line);
      break;
    case CallForm::Json:
      write_json(out, list, values);
      break;
    case CallForm::Chrome:
      write_chrome(out, list, values);
      break;
  }
  Shown shown(Symbols::Used);
  if (list.late() > 0) shown.notes.push_back("tacho calls: " + late_events_text(list.late()));
  if (list.calls().empty()) shown.notes.push_back("tacho: " + input + ": no such call");
  return shown;
}

}  // namespace

Result<cli::ExitStatus> run_calls(const std::vector<std::string>& arguments) {
  Options options;
  options.reading.session.wants_stacks = false;
  return run_view(describe(options), arguments, options.reading,
                  [&options](Session& session, TextOutput& out) { return show(session, out, options); });
}

}  // namespace tacho::report
