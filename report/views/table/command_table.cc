// tacho table: counts, sums and percentiles of a value by groups of samples.
#include <algorithm>
#include <map>
#include <utility>

#include "report/commands.h"
#include "report/filter_options.h"
#include "report/intervals.h"
#include "report/views/table/table_source.h"
#include "report/views/table/table_text.h"

namespace tacho::report {
namespace {

struct Options {
  ReadingOptions reading;
  TableQuestion question;
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
              return use_error("--csv and --json: a table has one form; take one of them");
            options.form = form;
            return Done{};
          }};
}

Result<> set_value(Options& options, std::string_view text) {
  auto value = cli::parse_expression("--value", text);
  if (!value) return std::move(value.error());
  options.question.value = std::move(*value);
  return Done{};
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
       [&options](std::string_view text) { return set_value(options, text); }});
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
  return line;
}

// Whether a text is a valid JSON number: no leading 0, no version number, no lone sign.
bool is_json_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const auto digits = [&text] {
    const std::size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(count);
    return count;
  };
  const bool begins_with_0 = text.starts_with('0');
  const std::size_t whole = digits();
  if (whole == 0 || (begins_with_0 && whole > 1)) return false;
  if (!text.starts_with('.')) return text.empty();
  text.remove_prefix(1);
  return digits() != 0 && text.empty();
}

class TableSink : public Sink {
 public:
  TableSink(Session& session, TextOutput& out, const Options& options)
      : session_(&session), out_(&out), options_(&options), intervals_(options.interval) {}

  // Once the events are known.
  Result<> prepare() {
    if (auto found = source_.find(options_->question, *session_); !found) return found;
    const bool has_values = source_.has_values();
    const std::string_view usual = has_values ? "count,sum,mean,min,p50,p99,max" : "count";
    auto columns = parse_columns("--columns", options_->columns.empty() ? usual : options_->columns);
    if (!columns) return std::move(columns.error());
    columns_ = std::move(*columns);
    const Names names = options_->reading.names;
    for (const std::string& name : source_.key_names()) head_.keys.push_back(printable(name, cell_names()));
    for (const TableColumn& column : columns_) head_.numbers.push_back(column.name);
    head_.title = source_.title(names);
    head_.has_begin = intervals_.is_on();
    head_.room = options_->reading.room();
    return find_order(has_values);
  }

  Flow on_sample(const ResolvedSample& sample) override {
    TableEvent* const event = source_.event(sample.event_index);
    if (event == nullptr || !intervals_.has(sample)) return Flow::GoOn;
    intervals_.move_to(time_of(sample, *event), [this] { write(); });
    Keys keys;
    keys.reserve(event->keys.size());
    for (const FieldKey& key : event->keys) keys.push_back(key.named_value(sample, session_->resolver()));
    if (has_whole()) add(whole_, Keys(keys), *event, sample);
    add(rows_, std::move(keys), *event, sample);
    return out_->is_done() ? Flow::Stop : Flow::GoOn;
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
    std::vector<const Rows::value_type*> order;
    for (const auto& row : rows_) order.push_back(&row);
    sort(order);
    if (options_->top != 0) order.resize(std::min<std::size_t>(order.size(), options_->top));
    std::vector<TableLine> lines;
    for (const auto* const row : order) lines.push_back(line_of(*row));
    const bool is_interval = intervals_.is_on() && !is_whole_;
    const auto begin = is_interval ? std::optional(intervals_.begin()) : std::nullopt;
    write_table(*out_, options_->form, head_, begin, lines, is_first_);
    is_first_ = false;
    rows_.clear();
  }
  bool is_empty() const { return is_first_; }
  std::string samples_without_times() const { return intervals_.samples_without_times(session_->events()); }
  // Notes about the tables.
  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    if (std::string left_out = source_.what_is_left_out(); !left_out.empty())
      notes.push_back(std::move(left_out));
    if (std::string slots = source_.what_slots_hide(); !slots.empty() && asks_for_sums())
      notes.push_back(std::move(slots));
    for (const auto& [event, readings] : readings_) {
      auto note =
          note_on_readings(event->name, session_->features().environment, readings, options_->interval);
      if (!note.empty()) notes.push_back(std::move(note));
    }
    return notes;
  }

 private:
  using Keys = std::vector<KeyValue>;
  struct Row {
    const TableEvent* event = nullptr;  // the event of the keys
    TableRow row;
  };
  using Rows = std::map<Keys, Row, KeyValuesLess>;

  bool asks_for_sums() const {
    return std::ranges::any_of(
        columns_, [](const auto& column) { return column.name == "sum" || column.name == "mean"; });
  }
  bool has_whole() const { return options_->reading.follows && intervals_.is_on(); }

  std::uint64_t time_of(const ResolvedSample& sample, const TableEvent& event) {
    if (event.count == nullptr) return sample.raw->time;
    return readings_[&event].time_of(sample.raw->time, intervals_);
  }
  static void add(Rows& rows, Keys&& keys, TableEvent& event, const ResolvedSample& sample) {
    auto& [shown_by, row] = rows[std::move(keys)];
    shown_by = &event;
    const std::uint64_t count = count_of(event.count, sample);
    row.samples += count;
    if (!event.value) return;
    const ExpressionValue value = event.value->value(sample);
    add_values(row.values, event.how, value, count, sample);
  }

  Result<> find_order(bool has_values) {
    const std::string name = !options_->sort.empty() ? options_->sort : has_values ? "sum" : "count";
    const auto& keys = source_.key_names();
    if (const auto key = std::ranges::find(keys, name); key != keys.end()) {
      sort_key_ = static_cast<std::size_t>(key - keys.begin());
      return Done{};
    }
    auto column = parse_columns("--sort", name);
    if (!column || column->size() != 1) {
      std::string known;
      for (const std::string& one : keys) known.append(known.empty() ? "" : ", ").append(one);
      return use_error("--sort: '" + name +
                       "' is neither a column (count, sum, mean, min, max, p99) nor a key here (" + known +
                       ")");
    }
    sort_column_ = std::move(column->front());
    return Done{};
  }

  // Equal rows stay in the order of their keys.
  void sort(std::vector<const Rows::value_type*>& order) const {
    if (sort_key_) {
      std::ranges::stable_sort(order, [this](const auto* a, const auto* b) {
        return compare(a->first[*sort_key_], b->first[*sort_key_]) < 0;
      });
    } else {
      std::vector<std::pair<ExpressionValue, const Rows::value_type*>> valued;
      for (const auto* const row : order) valued.emplace_back(sort_column_.value(row->second.row), row);
      std::ranges::stable_sort(valued, [](const auto& a, const auto& b) {
        if (b.first.is_nothing()) return !a.first.is_nothing();
        return apply(cli::Operation::Greater, a.first, b.first).is_true();
      });
      std::ranges::transform(valued, order.begin(), [](const auto& one) { return one.second; });
    }
    if (options_->is_reversed) std::ranges::reverse(order);
  }

  // " -> 15" behind 8, the least value of a slot.
  static std::string end_of_slot(const FieldKey& key, const KeyValue& value) {
    if (key.field() == nullptr || !has_slots(*key.field())) return {};
    const auto* const low = std::get_if<std::uint64_t>(&value);
    constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
    if (low == nullptr || *low > kMost) return {};
    return " -> " + std::to_string(slot_of(*key.field(), static_cast<std::int64_t>(*low)).highest);
  }

  // The JSON writer makes names safe itself.
  Names cell_names() const {
    return options_->form == TableForm::Json ? Names::Raw : options_->reading.names;
  }

  TableLine line_of(const Rows::value_type& row) const {
    TableLine line;
    const auto& keys = row.second.event->keys;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const KeyValue& value = row.first[i];
      TableKey key{keys[i].show(value, cell_names())};
      if (options_->form == TableForm::Text) key.text += end_of_slot(keys[i], value);
      const bool is_text =
          std::holds_alternative<std::string>(value) || std::holds_alternative<std::monostate>(value);
      key.is_number = !is_text && is_json_number(key.text);
      line.keys.push_back(std::move(key));
    }
    for (const TableColumn& column : columns_) line.numbers.push_back(column.value(row.second.row));
    return line;
  }

  Session* session_;
  TextOutput* out_;
  const Options* options_;
  TableSource source_;
  std::vector<TableColumn> columns_;
  TableHead head_;
  std::optional<std::size_t> sort_key_;
  TableColumn sort_column_;
  Rows rows_, whole_;
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
