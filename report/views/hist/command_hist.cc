#include "report/views/hist/command_hist.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "cli/shell_word.h"
#include "report/decode/event_name.h"
#include "report/filter_options.h"
#include "report/profile/distribution.h"
#include "report/profile/field_key.h"
#include "report/query/counted.h"
#include "report/samples/filter.h"
#include "report/views/hist/distribution_text.h"
#include "report/views/hist/field_choice.h"
#include "report/views/hist/value_table.h"

namespace tacho::report {
namespace {

constexpr std::string_view kNoKey = "none";

struct Options {
  ReadingOptions reading;
  std::string event, field, by;
  std::uint64_t step = 0;  // 0: powers of two
  std::uint64_t top = 0;   // 0: all
};

cli::CommandLine describe(Options& options) {
  auto line = command_line(
      "hist",
      "Shows how the values of a field are distributed, in powers of two: a field of a BPF event's payload "
      "or "
      "of a tracepoint. Texts and named numbers are counted one by one, the most frequent first.");
  auto& rows = line.options;
  add_reading_options(rows, options.reading);
  rows.push_back(follow_option(options.reading));
  rows.push_back(
      cli::text("--event", "NAME", "which event (default: the only one that has the field)", options.event));
  rows.push_back(cli::text("--field", "NAME",
                           "which field (default: the one tagged role:value, else the only one with a unit)",
                           options.field));
  rows.push_back(cli::text(
      "--by", "KEY[,KEY]",
      "a histogram for each value of these: other fields of the event, or the thread's comm, pid, tid and "
      "cpu "
      "(sample.comm and so on where a field has that name); none: a single one (default: the fields tagged "
      "role:key)",
      options.by));
  rows.push_back(cli::number("--linear", "STEP", "rows of equal width instead of powers of two", 1,
                             std::uint64_t{1} << 62, options.step));
  rows.push_back(cli::number("--top", "N",
                             "only the N groups of --by with the most values, and the N most frequent texts",
                             1, std::uint64_t{1} << 32, options.top));
  add_filter_options(rows, options.reading.session.filter);
  return line;
}

struct ValueLess {
  bool operator()(const KeyValue& a, const KeyValue& b) const { return compare(a, b) < 0; }
};

// The values of one group.
struct Group {
  explicit Group(std::uint64_t step) : distribution(step) {}
  Distribution distribution;                            // of numbers
  std::map<KeyValue, std::uint64_t, ValueLess> counts;  // of what is counted by value
  std::uint64_t total = 0;
};

class HistSink : public Sink {
 public:
  HistSink(Session& session, const Options& options)
      : session_(&session), options_(&options), schemas_(session.events(), session.features()) {}

  Flow on_sample(const ResolvedSample& sample) override {
    // The events are all known once there are samples.
    if (chosen_.field == nullptr) {
      if (auto chosen = choose(); !chosen) {
        error = std::move(chosen.error());
        return Flow::Stop;
      }
    }
    if (sample.event_index != chosen_.event) return Flow::GoOn;
    if (!add(sample)) {
      session_->diagnostics().add(
          format::Damage::BadRecord, format::Diagnostics::kNoOffset,
          "a payload of '" + event_ + "' that ends before its field '" + chosen_.field->name + "'");
    }
    return Flow::GoOn;
  }

  void write(TextOutput& out) const {
    bool is_first = true;
    for (const auto* entry : in_order()) {
      if (!is_first) out.character('\n');
      is_first = false;
      write_group(out, entry->first, entry->second);
      out.line_end();
    }
  }

  bool empty() const { return groups_.empty(); }
  std::vector<std::string> notes;
  std::optional<Error> error;

 private:
  using Keys = std::vector<KeyValue>;
  using Groups = std::map<Keys, Group, KeyValuesLess>;

  Result<> choose() {
    std::vector<std::string> names;
    for (const auto& event : session_->events()) names.push_back(event_name(event, session_->features()));
    auto chosen = choose_field(names, schemas_, options_->event, options_->field,
                               "tacho hist -i " + cli::shell_word(options_->reading.session.input));
    if (!chosen) return std::move(chosen.error());
    event_ = names[chosen->event];
    for (const std::string& name : key_names(*chosen->schema)) {
      auto key = FieldKey::find("--by", name, *chosen->schema, event_);
      if (!key) return std::move(key.error());
      if (key->hides_own()) {
        notes.push_back("tacho hist: --by " + printable(name) + " is the field of '" + printable(event_) +
                        "'; the sample's own is sample." + printable(name));
      }
      keys_.push_back(std::move(*key));
    }
    if (options_->step != 0 && is_counted_by_value(*chosen->field))
      return use_error("--linear: the values of '" + chosen->field->name +
                       "' are texts or names, counted one by one");
    if (options_->step != 0 && has_slots(*chosen->field))
      return use_error("--linear: the values of '" + chosen->field->name +
                       "' were counted in slots when they were recorded, and are shown in those");
    if (chosen->field->format.starts_with("linear:")) {
      const ExpressionValue last = highest_in_slot(*chosen->field, ExpressionValue::of(0));
      step_ = static_cast<std::uint64_t>(last.whole) + 1;
    }
    count_ = counted_fields(*chosen->schema).count;
    if (count_ == chosen->field) count_ = nullptr;
    chosen_ = *chosen;
    return Done{};
  }

  std::vector<std::string> key_names(const PayloadSchema& schema) const {
    if (options_->by == kNoKey) return {};
    if (!options_->by.empty()) return parse_name_list(options_->by);
    std::vector<std::string> names;
    for (const PayloadField& field : schema.fields) {
      if (field.role == "key") names.push_back(field.name);
    }
    return names;
  }

  // False when the payload ends before the field.
  bool add(const ResolvedSample& sample) {
    const PayloadField& field = *chosen_.field;
    const auto value = read_field(field, sample.raw->raw, sample.order);
    if (!value) return false;
    const std::uint64_t count = count_of(count_, sample);
    Group& group = group_of(sample);
    group.total += count;
    if (is_counted_by_value(field)) {
      group.counts[key_value(*value)] += count;
    } else if (const auto number = read_number(field, sample.raw->raw, sample.order)) {
      group.distribution.add(*number, count);
    }
    return true;
  }

  Group& group_of(const ResolvedSample& sample) {
    Keys keys;
    for (const FieldKey& key : keys_) keys.push_back(key.value(sample));
    return groups_.try_emplace(std::move(keys), step_).first->second;
  }

  // By their keys; with --top the largest first.
  std::vector<const Groups::value_type*> in_order() const {
    std::vector<const Groups::value_type*> order;
    for (const auto& group : groups_) order.push_back(&group);
    if (options_->top == 0) return order;
    std::ranges::stable_sort(order,
                             [](const auto* a, const auto* b) { return a->second.total > b->second.total; });
    order.resize(std::min<std::size_t>(order.size(), options_->top));
    return order;
  }

  void write_group(TextOutput& out, const Keys& keys, const Group& group) const {
    const Names names = options_->reading.names;
    const PayloadField& field = *chosen_.field;
    std::string heading = printable(event_, names) + ": " + printable(field.name, names);
    if (!field.unit.empty()) heading += " in " + printable(field.unit, names);
    for (std::size_t i = 0; i < keys_.size(); ++i)
      heading += ", " + printable(keys_[i].name(), names) + " " + keys_[i].show(keys[i], names);
    out.text(fmt::format("{}, {} value{}\n", heading, group.total, group.total == 1 ? "" : "s"));
    std::string label = printable(field.name, names);
    if (!field.unit.empty() && field.unit != field.name) label += " (" + printable(field.unit, names) + ")";
    if (!is_counted_by_value(field)) return write_distribution(out, label, group.distribution.buckets());
    std::vector<ValueCount> rows;
    for (const auto& [value, count] : group.counts) rows.push_back({show_key(&field, value, names), count});
    std::ranges::stable_sort(rows, std::ranges::greater(), &ValueCount::count);
    write_values(out, label, rows, group.total, options_->top);
  }

  Session* session_;
  const Options* options_;
  EventSchemas schemas_;
  std::uint64_t step_ = options_->step;
  ChosenField chosen_;                   // without a field: not chosen yet
  const PayloadField* count_ = nullptr;  // of samples that stand for many values
  std::string event_;                    // its name
  std::vector<FieldKey> keys_;
  Groups groups_;
};

Result<Shown> show(Session& session, TextOutput& out, const Options& options) {
  HistSink sink(session, options);
  run_with_progress(session, sink, out);
  const std::string input = printable(options.reading.session.input);
  if (sink.error) return std::move(*sink.error).in(input);
  Shown shown(Symbols::NotUsed);
  shown.notes = std::move(sink.notes);
  if (sink.empty()) {
    shown.notes.push_back("tacho: " + input + ": no sample of that event");
  } else {
    sink.write(out);
  }
  return shown;
}

}  // namespace

Result<cli::ExitStatus> run_hist(const std::vector<std::string>& arguments) {
  Options options;
  options.reading.session.wants_stacks = false;
  return run_command(describe(options), arguments, [&options] {
    return show_session(options.reading, [&options](Session& session, TextOutput& out) {
      return show(session, out, options);
    });
  });
}

}  // namespace tacho::report
