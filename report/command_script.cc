#include "report/command_script.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "report/event_name.h"
#include "report/header_text.h"
#include "report/importer_text.h"
#include "report/script_json.h"
#include "report/script_records.h"
#include "report/script_text.h"

namespace tacho::report {
namespace {

enum class Form : std::uint8_t { PerfText, Json, Importer };

struct Options {
  ReadingOptions reading;
  Form form = Form::PerfText;
  std::vector<std::string> field_lists;  // each -F as given
  FieldChoice fields;
  std::vector<std::string> remarks;
  std::string times;
  bool header = false, header_only = false;
  bool hide_chains = false, nanoseconds = false;
  std::vector<RecordGroup> shown;  // groups of other records

  bool shows(RecordGroup group) const {
    for (const RecordGroup one : shown) {
      if (one == group) return true;
    }
    return false;
  }
};

struct ShowRow {
  std::string_view option, help;
  RecordGroup group;
};

constexpr ShowRow kShowRows[] = {
    {"--show-task-events", "also COMM, FORK and EXIT records", RecordGroup::Task},
    {"--show-mmap-events", "also MMAP and MMAP2 records", RecordGroup::Mmap},
    {"--show-switch-events", "also SWITCH records", RecordGroup::Switch},
    {"--show-namespace-events", "also NAMESPACES records", RecordGroup::Namespaces},
    {"--show-lost-events", "also LOST records", RecordGroup::Lost},
    {"--show-bpf-events", "also KSYMBOL and BPF_EVENT records", RecordGroup::Bpf},
    {"--show-cgroup-events", "also CGROUP records", RecordGroup::Cgroup},
};

template <class Parse>
cli::Option list_option(std::string names, std::string value, std::string help, Parse&& parse) {
  return {std::move(names), cli::Takes::Value, std::move(value), std::move(help), std::forward<Parse>(parse)};
}

void add_filter_options(std::vector<cli::Option>& rows, Options& options) {
  Filter& filter = options.reading.session.filter;
  const auto numbers = [&rows](std::string names, std::string help, std::vector<std::uint32_t>& target) {
    const std::string shown = names;
    rows.push_back(list_option(std::move(names), "LIST", std::move(help),
                               [&target, shown](std::string_view text) -> Result<> {
                                 auto list = parse_number_list(shown, text);
                                 if (!list) return list.error();
                                 target = std::move(*list);
                                 return Done{};
                               }));
  };
  numbers("-C,--cpu", "only samples of these processors: 0,2-5", filter.cpus);
  numbers("--pid", "only samples of these processes", filter.pids);
  numbers("--tid", "only samples of these threads", filter.tids);
  rows.push_back(list_option("--comms", "LIST", "only samples of threads with these names",
                             [&filter](std::string_view text) -> Result<> {
                               filter.comms = parse_name_list(text);
                               return Done{};
                             }));
  rows.push_back(
      list_option("--time", "RANGE",
                  "only samples of this time: 1.5,2.25 in seconds, or parts of the capture: 10%-20%, 10%/2",
                  [&options](std::string_view text) -> Result<> {
                    options.times = text;
                    return Done{};
                  }));
}

void add_form_options(std::vector<cli::Option>& rows, Options& options) {
  const auto form = [&options](Form chosen, std::string_view name) {
    return [&options, chosen, name](std::string_view) -> Result<> {
      if (options.form != Form::PerfText && options.form != chosen)
        return use_error(std::string(name) + ": there is one form at a time, --json or --importer");
      options.form = chosen;
      return Done{};
    };
  };
  rows.push_back({"--json", cli::Takes::Nothing, "",
                  "one JSON object a sample: names, stack, every field of payloads and tracepoints;\n"
                  "with -F +srcline its frames have file and line",
                  form(Form::Json, "--json")});
  rows.push_back(
      {"--importer", cli::Takes::Nothing, "",
       "the text that viewers read without loss: names, stack and period of every sample, and no payload",
       form(Form::Importer, "--importer")});
}

// The options that say how perf's text looks, which the other forms have no use for.
Result<> check_form(const Options& options) {
  if (options.form == Form::PerfText) return Done{};
  const bool is_json = options.form == Form::Json;
  const bool has_other_fields = std::ranges::any_of(
      options.field_lists, [&](const std::string& list) { return !is_json || list != "+srcline"; });
  const struct {
    bool is_given;
    std::string_view option, reason;
  } rows[] = {
      {options.header || options.header_only, "--header", "tacho header shows it"},
      {!options.shown.empty(), "--show-...-events", "tacho dump shows every record, and has --json"},
      {has_other_fields, "-F",
       is_json ? "an object has every field; only -F +srcline adds to it" : "its fields are fixed"},
      {options.nanoseconds, "--ns",
       is_json ? "times are in nanoseconds already" : "not every viewer reads nine decimals"},
      {options.reading.names == Names::Raw, "--raw-names",
       is_json ? "raw bytes are no JSON" : "viewers refuse raw bytes"},
  };
  for (const auto& row : rows) {
    if (!row.is_given) continue;
    return use_error(std::string(row.option) + " does not go with " + (is_json ? "--json" : "--importer") +
                     ": " + std::string(row.reason));
  }
  return Done{};
}

cli::CommandLine describe(Options& options) {
  cli::CommandLine line =
      command_line("script", "Prints every sample of a capture as text, as perf script does.");
  auto& rows = line.options;
  add_reading_options(rows, options.reading);
  rows.push_back({"-F,--fields", cli::Takes::Value, "LIST",
                  "what to print: "
                  "comm,tid,pid,time,cpu,event,trace,ip,sym,dso,addr,symoff,period,bpf-output,misc,payload;\n"
                  "+payload adds to the default, -dso takes away, trace:time,event is for one type of event",
                  [&options](std::string_view text) {
                    options.field_lists.emplace_back(text);
                    return options.fields.apply(text, options.remarks);
                  }});
  add_form_options(rows, options);
  rows.push_back(
      flag("-G,--hide-call-graph", "one line a sample, without its call chain", options.hide_chains));
  rows.push_back(flag("--ns", "times with nine decimals (default: six)", options.nanoseconds));
  rows.push_back({"--max-stack", cli::Takes::Value, "N", "at most N addresses of a call chain (default: 127)",
                  [&options](std::string_view text) -> Result<> {
                    const auto number = cli::parse_number("--max-stack", text, 0, 65535);
                    if (!number) return number.error();
                    options.reading.session.max_stack = static_cast<std::size_t>(*number);
                    return Done{};
                  }});
  add_filter_options(rows, options);
  rows.push_back(flag("--header", "print the capture's header first", options.header));
  rows.push_back(flag("--header-only", "print the capture's header and nothing else", options.header_only));
  for (const ShowRow& row : kShowRows) {
    rows.push_back({std::string(row.option), cli::Takes::Nothing, "", std::string(row.help),
                    [&options, group = row.group](std::string_view) -> Result<> {
                      options.shown.push_back(group);
                      return Done{};
                    }});
  }
  return line;
}

class ScriptSink : public Sink {
 public:
  ScriptSink(Session& session, Options& options, TextOutput& out)
      : session_(&session), options_(&options), out_(&out) {}

  // The events of a pipe are known only once records come: what depends on them is made at the first of
  // these.
  Result<> start() {
    std::vector<std::string> names;
    for (const auto& event : session_->events()) names.push_back(event_name(event, session_->features()));
    auto settled = options_->fields.settle(session_->events(), names,
                                           options_->hide_chains ? CallChains::Hide : CallChains::Show,
                                           session_->layout().is_pipe ? Origin::Pipe : Origin::File);
    if (!settled) return settled;
    text_.emplace(*session_, options_->fields, options_->reading.names,
                  options_->nanoseconds ? TimeDigits::Nanoseconds : TimeDigits::Microseconds);
    if (session_->layout().is_pipe && options_->header) {
      write_features(*out_, session_->events(), session_->features(), options_->reading.names);
    }
    return Done{};
  }

  Flow on_sample(const ResolvedSample& sample) override {
    if (!ready()) return Flow::Stop;
    text_->write(*out_, sample);
    out_->line_end();
    return out_->is_done() ? Flow::Stop : Flow::GoOn;
  }

  Flow on_other(const OtherEvent& event) override {
    if (options_->shown.empty() || !options_->shows(group_of(*event.record))) return Flow::GoOn;
    if (!ready()) return Flow::Stop;
    if (!session_->filter().accepts_cpu(event.id.cpu)) return Flow::GoOn;
    text_->write_start(*out_, event);
    write_record(*out_, event.view->type, *event.record, options_->reading.names);
    out_->line_end();
    return out_->is_done() ? Flow::Stop : Flow::GoOn;
  }

  std::optional<Error> error;

 private:
  bool ready() {
    if (text_) return true;
    auto started = start();
    if (!started) error = std::move(started.error());
    return !error.has_value();
  }

  Session* session_;
  Options* options_;
  TextOutput* out_;
  std::optional<ScriptText> text_;
};

// Samples in a form that needs no more than each of them.
template <class Writer>
class FormSink : public Sink {
 public:
  FormSink(Session& session, TextOutput& out) : writer_(session), out_(&out) {}
  Flow on_sample(const ResolvedSample& sample) override {
    writer_.write(*out_, sample);
    out_->line_end();
    return out_->is_done() ? Flow::Stop : Flow::GoOn;
  }

 private:
  Writer writer_;
  TextOutput* out_;
};

template <class Writer>
Result<cli::ExitStatus> run_form(Session& session, const Options& options) {
  TextOutput out(STDOUT_FILENO);
  FormSink<Writer> sink(session, out);
  session.run(sink);
  return finish(session, out, options.reading, Symbols::Used);
}

}  // namespace

Result<cli::ExitStatus> run_script(const std::vector<std::string>& arguments) {
  Options options;
  const auto parsed = cli::parse(describe(options), arguments);
  if (!parsed) return parsed.error();
  if (*parsed == cli::Parsed::HelpShown) return cli::kWhole;
  if (const auto checked = check_form(options); !checked) return checked.error();
  for (const std::string& remark : options.remarks) std::fprintf(stderr, "%s\n", remark.c_str());

  options.reading.session.wants_stacks = !options.hide_chains;
  if (options.fields.has(Field::Srcline)) {
    options.reading.session.symbols.source_lines = symbolize::SourceLines::Yes;
  }
  auto session = Session::open(options.reading.session);
  if (!session) return std::move(session.error());
  if (!options.times.empty()) {
    auto times = parse_times(options.times, session->features().environment);
    if (!times) return std::move(times.error());
    session->filter().times = std::move(*times);
  }
  if (options.form == Form::Json) return run_form<ScriptJson>(*session, options);
  if (options.form == Form::Importer) return run_form<ImporterText>(*session, options);
  TextOutput out(STDOUT_FILENO);
  if (options.header || options.header_only) {
    write_header(out, session->layout(), session->events(), session->features(), options.reading.names);
  }
  if (options.header_only) return finish(*session, out, options.reading, Symbols::NotUsed);
  ScriptSink sink(*session, options, out);
  // Wrong fields are told before the first line, when the events are known already.
  if (!session->events().empty() && !session->layout().is_pipe) {
    if (auto started = sink.start(); !started) return std::move(started.error());
  }
  session->run(sink);
  if (sink.error) return std::move(*sink.error);
  return finish(*session, out, options.reading, Symbols::Used);
}

}  // namespace tacho::report
