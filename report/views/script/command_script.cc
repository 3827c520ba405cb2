// tacho script: every sample as text.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <string_view>
#include <variant>

#include "cli/absent_options.h"
#include "cli/message_text.h"
#include "report/command.h"
#include "report/commands.h"
#include "report/filter_options.h"
#include "report/perf_text/header_text.h"
#include "report/samples/event_choice.h"
#include "report/samples/text_view.h"
#include "report/views/script/importer_text.h"
#include "report/views/script/script_columns.h"
#include "report/views/script/script_json.h"
#include "report/views/script/script_text.h"

namespace tacho::report {
namespace {

using cli::Takes;

constexpr std::string_view kTraces =
    "processor traces (AUX) are not decoded here; perf makes samples of them, which every command reads: "
    "perf inject --itrace=i1ms -i FILE -o DECODED";
constexpr std::string_view kScripts =
    "scripts are not run here; the fields of every sample are in tacho script --fields and tacho dump --json";
constexpr std::string_view kGuests = "guests' samples are shown by address; what they ran is not named";

// Options of perf script that tacho script does not have, and what to use instead.
constexpr cli::AbsentOption kAbsentOptions[] = {
    {"-D,--dump-raw-trace", Takes::Nothing,
     "tacho report -D prints every record with its bytes, tacho dump with its fields"},
    {"--dump-unsorted-raw-trace", Takes::Nothing, "tacho dump prints every record in the order of the file"},
    {"--show-round-events", Takes::Nothing, "tacho dump shows FINISHED_ROUND records in their places"},
    {"-v,--verbose", Takes::Nothing,
     "-F +ip,+symoff shows addresses; tacho dump prints every record with its fields"},
    {"-d,--debug-mode", Takes::Nothing, "records out of order and lost ones are always reported at the end"},
    {"-L,--Latency", Takes::Nothing, "times between samples are shown by --deltatime"},
    {"--per-event-dump", Takes::Nothing,
     "print the types of events apart, as with -F trace: -F sw:..., or fold one with tacho folded "
     "--event-filter"},
    {"-l,--list", Takes::Nothing, kScripts},
    {"-s,--script", Takes::Value, kScripts},
    {"-g,--gen-script", Takes::Value, kScripts},
    {"--dlfilter", Takes::Value, kScripts},
    {"--dlarg", Takes::Value, kScripts},
    {"--list-dlfilters", Takes::Nothing, kScripts},
    {"-a,--all-cpus", Takes::Nothing, "nothing is recorded here; tacho record -a does that"},
    {"--demangle-kernel", Takes::Nothing, "kernel symbols are shown as kallsyms has them"},
    {"--show-kernel-path", Takes::Nothing, "the kernel is shown as [kernel.kallsyms]; -k names its file"},
    {"--stitch-lbr", Takes::Nothing, "call stacks that the processor kept (LBR) are shown as recorded"},
    {"--itrace", Takes::Optional, kTraces},
    {"--insn-trace", Takes::Optional, kTraces},
    {"--xed", Takes::Optional, kTraces},
    {"--call-trace", Takes::Optional, kTraces},
    {"--call-ret-trace", Takes::Optional, kTraces},
    {"--graph-function", Takes::Value, kTraces},
    {"--guestmount", Takes::Value, kGuests},
    {"--guestkallsyms", Takes::Value, kGuests},
    {"--guestmodules", Takes::Value, kGuests},
    {"--guestvmlinux", Takes::Value, kGuests},
    {"--guest-code", Takes::Nothing, kGuests},
};

enum class Form : std::uint8_t { PerfText, Json, Importer };

struct Options {
  Options() { reading.session.max_stack = kDeepestOfPerf; }

  ReadingOptions reading;
  Form form = Form::PerfText;
  std::string columns;  // empty: no table of columns
  bool is_csv = false;
  std::vector<std::string> field_lists;  // each -F as given
  FieldChoice fields;
  std::vector<std::string> remarks;
  SwitchOptions switches;
  FrameShape frames;
  bool header = false, header_only = false, full_header = false;
  bool hide_chains = false, nanoseconds = false, relative = false, delta = false;
  std::vector<RecordGroup> shown;  // groups of other records

  bool shows(RecordGroup group) const { return std::ranges::find(shown, group) != shown.end(); }
  // A KSYMBOL record belongs to two groups.
  bool shows(const format::Record& record) const {
    const bool is_symbol = std::holds_alternative<format::KsymbolRecord>(record);
    return shows(group_of(record)) || (is_symbol && shows(RecordGroup::TextPoke));
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
    {"--show-text-poke-events", "also TEXT_POKE and KSYMBOL records", RecordGroup::TextPoke},
};

void add_form_options(std::vector<cli::Option>& rows, Options& options) {
  const auto form = [&options](Form chosen, std::string_view name) {
    return [&options, chosen, name](std::string_view) -> Result<> {
      if (options.form != Form::PerfText && options.form != chosen)
        return use_error(std::string(name) + ": there is one form at a time, --json or --importer");
      options.form = chosen;
      return Done{};
    };
  };
  rows.push_back({"--json", Takes::Nothing, "",
                  "one JSON object a sample: names, stack, every field of payloads and tracepoints;\n"
                  "with -F +srcline its frames have file and line",
                  form(Form::Json, "--json")});
  rows.push_back({"--importer", Takes::Nothing, "",
                  "text for viewers of profiles, all of which read it without loss: names, stack and period "
                  "of every sample, without payloads",
                  form(Form::Importer, "--importer")});
  rows.push_back(
      {"--columns", Takes::Value, "LIST",
       "one line a sample, with these columns: fields of a payload or tracepoint, values of every "
       "sample (comm, pid, tid, cpu, time, period, cgroup, event), sym and dso. auto: time, comm, "
       "pid and the event's own fields, or sym if it has none; all: these with tid, cpu and event. "
       "Samples without any of the named fields are left out. --csv and --json choose these forms",
       [&options](std::string_view text) -> Result<> {
         if (text.empty()) return use_error("--columns: names no column");
         options.columns.append(options.columns.empty() ? "" : ",").append(text);
         return Done{};
       }});
  rows.push_back(wide_option("-w,--wide", options.reading));
  rows.push_back(
      flag("--csv", "with --columns: comma-separated values, a first line of names", options.is_csv));
}

// Refuses options that have no effect on --columns, --json or --importer: most are about the layout of perf's
// text.
Result<> check_form(const Options& options) {
  const bool is_table = !options.columns.empty(), is_json = options.form == Form::Json;
  if (!is_table && options.is_csv)
    return use_error("--csv goes with --columns; --json has every field by itself");
  if (!is_table && options.form == Form::PerfText) return Done{};
  const auto is_other = [&](const std::string& list) { return !is_json || list != "+srcline"; };
  const struct {
    bool is_given;
    std::string_view option, reason;
  } rows[] = {
      {is_table && options.form == Form::Importer, "--importer", "its fields are fixed"},
      {options.is_csv && is_json, "--csv with --json", "lines have one form; take one of them"},
      {is_table && !options.field_lists.empty(), "-F", "--columns names them all"},
      {options.header || options.header_only, "--header", "tacho header shows it"},
      {!options.shown.empty(), "--show-...-events",
       is_table ? "tacho dump shows every record" : "tacho dump shows every record, and has --json"},
      {!is_table && std::ranges::any_of(options.field_lists, is_other), "-F",
       is_json ? "an object has every field; only -F +srcline adds to it" : "its fields are fixed"},
      {options.nanoseconds, "--ns",
       is_table  ? "times have microseconds"
       : is_json ? "times are in nanoseconds already"
                 : "not every viewer reads nine decimals"},
      {options.relative || options.delta, "--reltime or --deltatime", "times are those of the capture"},
      {options.reading.perf_bytes.is_asked_for, "--as-perf", "perf has no such text"},
      {options.reading.names == Names::Raw && (is_json || !is_table), "--raw-names",
       is_json ? "raw bytes are no JSON" : "viewers refuse raw bytes"},
  };
  const std::string_view form = is_table ? "--columns" : is_json ? "--json" : "--importer";
  for (const auto& row : rows)
    if (row.is_given)
      return use_error(fmt::format("{} does not go with {}: {}", row.option, form, row.reason));
  return Done{};
}

cli::CommandLine describe(Options& options) {
  cli::CommandLine line =
      command_line("script", "Prints every sample of a capture as text, as perf script does.");
  auto& rows = line.options;
  add_reading_options(rows, options.reading);
  rows.push_back(as_perf_option(options.reading));
  rows.push_back(truncated_stacks_option(options.reading.session.symbols.cut_mark));
  rows.push_back(follow_option(options.reading));
  rows.push_back(
      {"-F,--fields", Takes::Value, "LIST",
       "what to print: comm, tid, pid, time, cpu, event, trace, ip, sym, symoff, dso, addr, period, "
       "bpf-output, payload, misc, srcline, srccode, iregs, uregs, brstack, brstacksym, brstackoff, "
       "brstackinsn, brstackinsnlen, data_src, weight, ins_lat, phys_addr, data_page_size, "
       "code_page_size, cgroup, insn, insnlen, tod, synth, flags;\n"
       "+srcline adds to the default, -dso takes away, trace:time,event is for one type of event; payload, "
       "in place of bpf-output, is a default of BPF events whose fields are known",
       [&options](std::string_view text) {
         options.field_lists.emplace_back(text);
         return options.fields.apply(text, options.remarks);
       }});
  add_form_options(rows, options);
  rows.push_back(stable_option("--ns", options.reading.session.symbols, [&options]() -> Result<> {
    options.nanoseconds = true;
    return Done{};
  }));
  rows.push_back(
      flag("-G,--hide-call-graph", "one line a sample, without its call chain", options.hide_chains));
  rows.push_back(flag("--ns", "times with nine decimals (default: six)", options.nanoseconds));
  rows.push_back(flag("--reltime", "times since the first line", options.relative));
  rows.push_back(flag("--deltatime", "times since the line before", options.delta));
  rows.push_back(cli::number("--max-stack", "N", "at most N addresses of a call chain (default: 127)", 0,
                             65535, options.reading.session.max_stack));
  rows.push_back(cli::number("--max-blocks", "N", "brstackinsn: the last N blocks of code (default: all)", 0,
                             65535, options.frames.most_blocks));
  rows.push_back(flag("--full-source-path", "srcline: files with their folders", options.frames.has_folders));
  rows.push_back(event_option(options.reading.session.filter));
  add_filter_options(rows, options.reading.session.filter,
                     {"-d"});  // perf script has another -d, so the filter option -d is not offered
  add_switch_options(rows, options.switches);
  rows.push_back({"--stop-bt", Takes::Value, "LIST", "call chains end at these functions",
                  [&options](std::string_view text) -> Result<> {
                    options.frames.last_functions = parse_name_list(text);
                    return Done{};
                  }});
  rows.push_back(flag("--header", "print the capture's header first", options.header));
  rows.push_back(flag("--header-only", "print the capture's header and nothing else", options.header_only));
  rows.push_back(flag("-I,--show-info", "with --header: also topology, caches and memory of the host",
                      options.full_header));
  for (const ShowRow& row : kShowRows) {
    rows.push_back({std::string(row.option), Takes::Nothing, "", std::string(row.help),
                    [&options, group = row.group](std::string_view) -> Result<> {
                      options.shown.push_back(group);
                      return Done{};
                    }});
  }
  cli::add_absent_options(rows, kAbsentOptions);
  line.epilog.insert(
      0,
      "Examples:\n"
      "  tacho script perf.data --columns auto          a line for each event, with its fields\n"
      "  tacho script bio.data --where 'lat_ns > 10ms'\n"
      "  tacho script perf.data --json                  an object for each sample\n"
      "\n");
  return line;
}

// Writes the samples of one thread's chunks.
class ScriptPen : public Pen {
 public:
  ScriptPen(Session& session, const Options& options, TimeText times, std::mutex* naming)
      : text_(session, options.fields, options.reading.names, times, options.frames, naming) {}
  Flow on_sample(const ResolvedSample& sample) override {
    text_.write(written_, sample);
    return Flow::Continue;
  }
  std::size_t size() const override { return written_.size(); }
  void swap_buffers() override {
    std::swap(written_, turned_);
    written_.clear();
  }
  std::string_view text() const { return turned_.view(); }

 private:
  ScriptText text_;
  alignas(format::kApart) TextBuffer written_;
  alignas(format::kApart) TextBuffer turned_;
};

class ScriptSink : public Sink, private TextView {
 public:
  ScriptSink(Session& session, Options& options, TextOutput& out)
      : session_(&session), options_(&options), out_(&out), switch_(options.switches) {}

  // Reports what the text lacks because the system refused something. Call it once, at the end.
  void report(format::Diagnostics& diagnostics) const {
    if (text_) text_->report(diagnostics);
  }
  // Checks the options against the events of the capture, which in a pipe are known only after the first
  // records. False: `error` has the fault.
  bool ready() {
    if (text_) return true;
    if (error) return false;
    auto started = start();
    if (!started) error = std::move(started.error());
    return !error.has_value();
  }

  bool takes_non_samples() const override { return !options_->shown.empty(); }

  TextView* text_view() override {
    // In perf, a name can depend on how often its address was looked up.
    const bool depends_on_lookups =
        options_->reading.session.symbols.use_symbol_name == symbolize::UseSymbolName::AsPerf &&
        !session_->resolver().names_are_plain();
    const bool is_usual = text_ && !names_other_addresses(*session_, options_->fields) &&
                          !depends_on_lookups && options_->shown.empty() &&
                          !options_->switches.is_asked_for() && text_->can_fork();
    return is_usual ? this : nullptr;
  }

  Flow on_sample(const ResolvedSample& sample) override {
    if (!ready()) return Flow::Stop;
    if (!switch_.accepts(sample)) return Flow::Continue;
    text_->write(*out_, sample);
    out_->line_end();
    return out_->is_done() ? Flow::Stop : Flow::Continue;
  }

  Flow on_non_sample(const NonSampleRecord& event) override {
    if (options_->shown.empty() || !options_->shows(*event.record)) return Flow::Continue;
    if (!ready()) return Flow::Stop;
    if (!session_->filter().accepts_cpu(event.id.cpu)) return Flow::Continue;
    text_->write_start(*out_, event);
    if (const auto* poke = std::get_if<format::TextPokeRecord>(event.record)) {
      write_text_poke(*out_, *poke, session_->resolver().kernel_frames(poke->address).front(),
                      options_->reading.names);
    } else {
      write_record(*out_, event.view->type, *event.record, options_->reading.names);
    }
    out_->line_end();
    return out_->is_done() ? Flow::Stop : Flow::Continue;
  }

  std::optional<Error> error;

 private:
  Result<> start() {
    const std::vector<std::string> names = event_names(session_->events());
    auto settled = options_->fields.settle(session_->events(), names,
                                           options_->hide_chains ? CallChains::Hide : CallChains::Show,
                                           session_->layout().is_pipe ? Origin::Pipe : Origin::File);
    if (!settled) return settled;
    for (const std::string& remark : options_->fields.dropped())
      std::fprintf(stderr, "%s\n", cli::printable_message(remark).c_str());
    if (options_->fields.has(Field::Tod) && !session_->features().environment.clock_data) {
      return use_error(
          "-F tod: the capture does not say which time of day its clock stood for; record with tacho, or "
          "with perf record -k CLOCKID");
    }
    if (auto found = switch_.find_events(names); !found) return found;
    text_.emplace(*session_, options_->fields, options_->reading.names, times(), options_->frames);
    if (session_->layout().is_pipe && options_->header) {
      write_features(*out_, session_->events(), session_->features(), options_->reading.names,
                     options_->full_header ? HeaderDetail::Full : HeaderDetail::Brief);
    }
    return Done{};
  }

  std::unique_ptr<Pen> fork(std::mutex* naming) override {
    return std::make_unique<ScriptPen>(*session_, *options_, times(), naming);
  }
  Flow put(Pen& pen, std::size_t begin, std::size_t end) override {
    out_->text(static_cast<ScriptPen&>(pen).text().substr(begin, end - begin));
    out_->line_end();
    return out_->is_done() ? Flow::Stop : Flow::Continue;
  }

  TimeText times() const {
    const TimeBase base = options_->relative ? TimeBase::FirstLine
                          : options_->delta  ? TimeBase::LineBefore
                                             : TimeBase::Clock;
    return {options_->nanoseconds ? TimeDigits::Nanoseconds : TimeDigits::Microseconds, base,
            session_->features().environment.clock_data};
  }
  Session* session_;
  Options* options_;
  TextOutput* out_;
  EventSwitch switch_;
  std::optional<ScriptText> text_;
};

// Writes samples in a form that has no other records.
template <class Writer>
class FormSink : public Sink {
 public:
  FormSink(Session& session, const SwitchOptions& switches, TextOutput& out, Writer writer)
      : session_(&session), switch_(switches), writer_(std::move(writer)), out_(&out) {}
  bool takes_non_samples() const override { return false; }
  Flow on_sample(const ResolvedSample& sample) override {
    if (!knows_events_ && !find_events()) return Flow::Stop;
    if (!switch_.accepts(sample)) return Flow::Continue;
    writer_.write(*out_, sample);
    out_->line_end();
    return out_->is_done() ? Flow::Stop : Flow::Continue;
  }

  Writer& writer() { return writer_; }

  std::optional<Error> error;

 private:
  bool find_events() {
    auto found = switch_.find_events(event_names(session_->events()));
    if (!found) error = std::move(found.error());
    knows_events_ = !error.has_value();
    return knows_events_;
  }

  Session* session_;
  EventSwitch switch_;
  bool knows_events_ = false;
  Writer writer_;
  TextOutput* out_;
};

template <class Writer>
Result<Shown> show_form(Session& session, TextOutput& out, const Options& options) {
  FormSink<Writer> sink(session, options.switches, out, Writer(session));
  run_with_progress(session, sink, out);
  if (sink.error) return std::move(*sink.error);
  return Shown(Symbols::Used);
}

Result<Shown> show_columns(Session& session, TextOutput& out, const Options& options) {
  const std::string input = printable(options.reading.session.input);
  auto columns = Columns::find_columns(options.columns, session);
  if (!columns) return std::move(columns.error()).in(input);
  const ColumnsForm form = options.is_csv               ? ColumnsForm::Csv
                           : options.form == Form::Json ? ColumnsForm::Json
                                                        : ColumnsForm::Text;
  FormSink<ColumnsText> sink(
      session, options.switches, out,
      ColumnsText(std::move(*columns), form, options.reading.names, options.reading.terminal_room()));
  run_with_progress(session, sink, out, [&] { sink.writer().flush(out); });
  if (sink.error) return std::move(*sink.error);
  sink.writer().flush(out);
  return Shown(Symbols::Used);
}

Result<Shown> show_text(Session& session, TextOutput& out, Options& options) {
  if (options.header || options.header_only) {
    write_header(out, session.layout(), session.events(), session.features(), options.reading.names,
                 options.full_header ? HeaderDetail::Full : HeaderDetail::Brief);
  }
  if (options.header_only) return Shown(Symbols::NotUsed);
  ScriptSink sink(session, options, out);
  // Wrong fields are reported before the first line, when the events are known already.
  if (!session.events().empty() && !session.layout().is_pipe && !sink.ready()) return std::move(*sink.error);
  run_with_progress(session, sink, out);
  // A pipe without samples: wrong options are reported now.
  if (!session.events().empty() && !sink.ready()) return std::move(*sink.error);
  if (sink.error) return std::move(*sink.error);
  sink.report(session.diagnostics());
  return Shown(Symbols::Used);
}

Result<Shown> show(Session& session, TextOutput& out, Options& options) {
  if (!options.columns.empty()) read_head(session);
  if (auto checked = check_events(session, options.reading); !checked) return std::move(checked.error());
  if (!options.columns.empty()) return show_columns(session, out, options);
  if (options.form == Form::Json) return show_form<ScriptJson>(session, out, options);
  if (options.form == Form::Importer) return show_form<ImporterText>(session, out, options);
  return show_text(session, out, options);
}

// Checks of the whole command line.
Result<> settle(Options& options) {
  if (const auto checked = check_form(options); !checked) return checked;
  for (const std::string& remark : options.remarks)
    std::fprintf(stderr, "%s\n", cli::printable_message(remark).c_str());
  if (options.relative && options.delta) return use_error("--reltime and --deltatime: give one of them");
  options.reading.session.wants_stacks = !options.hide_chains && options.columns.empty();
  const bool dumps_payloads = options.reading.perf_bytes.dumps_payloads;
  if (dumps_payloads) options.fields.dump_payloads();
  options.reading.session.wants_payload_stacks = !dumps_payloads || options.fields.has(Field::Payload);
  if (options.fields.has(Field::Srcline) || options.fields.has(Field::Srccode))
    options.reading.session.symbols.source_lines = symbolize::SourceLines::Yes;
  return Done{};
}

}  // namespace

Result<cli::ExitStatus> run_script(const std::vector<std::string>& arguments) {
  Options options;
  return run_command(describe(options), arguments, [&options]() -> Result<cli::ExitStatus> {
    if (auto settled = settle(options); !settled) return std::move(settled.error());
    return show_session(options.reading, [&options](Session& session, TextOutput& out) {
      return show(session, out, options);
    });
  });
}

}  // namespace tacho::report
