#include "report/views/calls/command_calls.h"

#include <charconv>
#include <optional>
#include <utility>

#include "report/filter_options.h"
#include "report/views/calls/call_forms.h"

namespace tacho::report {
namespace {

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
                   "Shows the calls of functions that -e calls or -e follow recorded: one after another with "
                   "their durations, who called whom, or by function.");
  auto& rows = line.options;
  add_reading_options(rows, options.reading);
  rows.push_back(form_option(options, "--replay",
                             "calls in their order, indented by who called them (the default)",
                             CallForm::Replay));
  rows.push_back(form_option(options, "--graph",
                             "who called whom: calls of one function from the same callers are "
                             "one line, with their time together",
                             CallForm::Graph));
  rows.push_back(form_option(options, "--report",
                             "a line for each function: its time with all that it called, "
                             "without, its longest call, and how many there were",
                             CallForm::Report));
  rows.push_back(
      form_option(options, "--json", "one JSON object a call, times in nanoseconds", CallForm::Json));
  rows.push_back(
      form_option(options, "--chrome", "what chrome://tracing and Perfetto read", CallForm::Chrome));
  rows.push_back(
      {"--object", cli::Takes::Value, "ADDR",
       "only calls that had this address among their arguments (of -e follow: that got this object) or "
       "returned it: the life of one object, through functions and threads",
       [&options](std::string_view text) { return set_object(options, text); }});
  rows.push_back(flag("--no-values", "names of functions without arguments and what they returned",
                      options.leaves_values_out));
  rows.push_back(wide_option("-w,--wide", options.reading));
  add_filter_options(rows, options.reading.session.filter);
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
  const CallValues values(types, list);
  write_calls(out, options.form.value_or(CallForm::Replay), list, find_callers(list),
              options.leaves_values_out ? nullptr : &values, options.reading.names, options.reading.room());
  Shown shown(Symbols::Used);
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
