// tacho table: counts, sums and percentiles of a value by groups of samples.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "report/commands.h"
#include "report/filter_options.h"
#include "report/intervals.h"
#include "report/views/table/table_counts.h"

namespace tacho::report {
namespace {

struct Options {
  ReadingOptions reading;
  TableRequest question;
  std::string columns, sort;
  std::uint64_t top = 0;       // 0: all
  std::uint64_t interval = 0;  // ns; 0: one table
  bool is_reversed = false;
  TableForm form = TableForm::Text;
};

cli::Option form_option(Options& options, std::string_view name, std::string_view help, TableForm form) {
  return {std::string(name), cli::Takes::Nothing, "", std::string(help),
          [&options, form](std::string_view) -> Result<> {
            if (options.form != TableForm::Text && options.form != form)
              return use_error("--csv and --json cannot be combined");
            options.form = form;
            return Done{};
          }};
}

cli::CommandLine describe(Options& options) {
  auto line =
      command_line("table",
                   "Groups samples, and prints counts, sums, means and percentiles of a value: a field "
                   "of a BPF event's payload or of a tracepoint, or an expression over such fields.");
  auto& rows = line.options;
  add_input_options(rows, options.reading);
  rows.push_back(follow_option(options.reading));
  rows.push_back(event_list_option(
      "--event", "default: every event that has the keys; with several the event is the first key",
      options.question.event));
  rows.push_back(cli::text(
      "--by", "KEY[,KEY]",
      "group by these: fields of the event, or comm, pid, tid, cpu, time, period, cgroup, event "
      "(sample.comm where a field has that name) (default: the program's own choice, else fields with "
      "role:function, else with role:key, else comm)",
      options.question.by));
  rows.push_back(
      {"--value", cli::Takes::Value, "EXPR",
       "the value: a field, or an expression as for --where, 'bytes / 1024' (default: the field with "
       "role:value, else the only one with a unit)",
       [&options](std::string_view text) -> Result<> {
         auto value = cli::parse_expression("--value", text);
         if (!value) return std::move(value.error());
         options.question.value = std::move(*value);
         return Done{};
       }});
  rows.push_back(
      cli::text("--columns", "LIST",
                "the columns: count, sum, mean, min, max, median, and percentiles such as p99.9, which are "
                "exact to 1 part in 128 (default: count,sum,mean,min,p50,p99,max; without a value: count)",
                options.columns));
  rows.push_back(
      cli::text("--sort", "NAME",
                "sort rows by a column, largest first, or by a key (default: sum; without a value: count)",
                options.sort));
  rows.push_back(cli::flag("--reverse", "reverse the order of rows", options.is_reversed));
  rows.push_back(cli::number("--top", "N", "only the first N rows", 1, std::uint64_t{1} << 32, options.top));
  rows.push_back(interval_option(
      "one table for each interval of this length: seconds, or as in 100ms; for values counted in the "
      "kernel, a multiple of the recorder's --interval. With --follow, also one of the whole at the end",
      options.interval));
  rows.push_back(wide_option("-w,--wide", options.reading));
  rows.push_back(
      form_option(options, "--csv", "comma-separated values, a first line of names", TableForm::Csv));
  rows.push_back(form_option(options, "--json", "one JSON object a row", TableForm::Json));
  add_filter_options(rows, options.reading.session.filter);
  line.epilog.insert(0,
                     "Examples:\n"
                     "  tacho table open.data --by path,error\n"
                     "  tacho table bio.data --by comm --value bytes --columns count,sum,p99\n"
                     "  tacho table sched.data --event sched:sched_switch --by prev_comm\n"
                     "\n");
  return line;
}

class TableSink : public Sink {
 public:
  TableSink(Session& session, TextOutput& out, const Options& options)
      : session_(&session), out_(&out), options_(&options), intervals_(options.interval) {}

  // To be called when the session's events are known.
  Result<> prepare() {
    if (auto found = counts_.find_columns(options_->question, options_->columns, options_->sort, *session_);
        !found)
      return found;
    head_ = counts_.head(cell_names());
    head_.has_begin = intervals_.is_on();
    head_.room = options_->reading.room();
    return Done{};
  }

  Flow on_sample(const ResolvedSample& sample) override {
    TableEvent* const event = counts_.event(sample.event_index);
    if (event == nullptr || !intervals_.has(sample)) return Flow::Continue;
    intervals_.move_to(time_of(sample, *event), [this] { write(); });
    auto keys = counts_.keys_of(*event, sample);
    if (has_whole()) TableCounts::add_row(whole_, TableCounts::Keys(keys), *event, sample);
    TableCounts::add_row(rows_, std::move(keys), *event, sample);
    return out_->is_done() ? Flow::Stop : Flow::Continue;
  }

  void write_finished_interval() {
    if (!rows_.empty()) intervals_.move_by_clock([this] { write(); });
  }

  // Prints the last interval, and with --follow --interval the whole capture after it.
  void finish() {
    write();
    if (!has_whole() || whole_.empty()) return;
    rows_ = std::move(whole_);
    is_whole_ = true;
    write();
  }

  // Prints the rows since the last table.
  void write() {
    if (rows_.empty()) return;
    auto order = counts_.in_order(rows_);
    if (options_->is_reversed) std::ranges::reverse(order);
    if (options_->top != 0) order.resize(std::min<std::size_t>(order.size(), options_->top));
    std::vector<TableLine> lines;
    for (const auto* const row : order) lines.push_back(counts_.line_of(*row, cell_names(), options_->form));
    const bool is_interval = intervals_.is_on() && !is_whole_;
    const auto begin = is_interval ? std::optional(intervals_.begin_seconds()) : std::nullopt;
    write_table(*out_, options_->form, head_, begin, lines, is_first_);
    is_first_ = false;
    rows_.clear();
  }
  bool is_empty() const { return is_first_; }
  std::string samples_without_times() const { return intervals_.samples_without_times(session_->events()); }
  // Notes about the tables.
  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    if (std::string left_out = counts_.source().note_on_events(); !left_out.empty())
      notes.push_back(std::move(left_out));
    if (std::string slots = counts_.source().note_on_slots(); !slots.empty() && asks_for_sums())
      notes.push_back(std::move(slots));
    for (const auto& [event, readings] : readings_) {
      auto note =
          note_on_readings(event->name, session_->features().environment, readings, options_->interval);
      if (!note.empty()) notes.push_back(std::move(note));
    }
    return notes;
  }

 private:
  bool asks_for_sums() const {
    return std::ranges::any_of(
        counts_.columns(), [](const auto& column) { return column.name == "sum" || column.name == "mean"; });
  }
  bool has_whole() const { return options_->reading.follows && intervals_.is_on(); }

  std::uint64_t time_of(const ResolvedSample& sample, const TableEvent& event) {
    if (event.count == nullptr) return sample.fields->time;
    return readings_[&event].time_of(sample.fields->time, intervals_);
  }
  // The JSON writer makes names safe itself.
  Names cell_names() const {
    return options_->form == TableForm::Json ? Names::Raw : options_->reading.names;
  }

  Session* session_;
  TextOutput* out_;
  const Options* options_;
  TableCounts counts_;
  TableHead head_;
  TableCounts::Rows rows_, whole_;
  bool is_whole_ = false;  // the rows are those of the whole capture
  bool is_first_ = true;
  Intervals intervals_;
  std::unordered_map<const TableEvent*, Readings> readings_;  // of events whose samples hold counts
};

Result<Shown> show(Session& session, TextOutput& out, const Options& options) {
  read_head(session);
  TableSink sink(session, out, options);
  const std::string input = printable(options.reading.session.input);
  if (auto prepared = sink.prepare(); !prepared) return std::move(prepared.error()).in(input);
  run_with_progress(session, sink, out, [&sink] { sink.write_finished_interval(); });
  sink.finish();
  Shown shown(Symbols::NotUsed);
  if (const std::string timeless = sink.samples_without_times(); !timeless.empty()) {
    shown.notes.push_back("tacho: " + input + ": " + printable(timeless));
    shown.status = cli::kIncomplete;
  } else if (sink.is_empty()) {
    shown.notes.push_back("tacho: " + input + ": no sample of these events");
  }
  for (const std::string& note : sink.notes())
    shown.notes.push_back("tacho: " + input + ": " + printable(note));
  return shown;
}

}  // namespace

Result<cli::ExitStatus> run_table(const std::vector<std::string>& arguments) {
  Options options;
  options.reading.session.wants_stacks = false;
  return run_view(describe(options), arguments, options.reading,
                  [&options](Session& session, TextOutput& out) {
                    options.question.only_counts =
                        options.columns == "count" && (options.sort.empty() || options.sort == "count");
                    return show(session, out, options);
                  });
}

}  // namespace tacho::report
