#include "report/views/hist/hist_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "cli/message_text.h"
#include "report/output/field_sinks.h"
#include "report/output/terminal.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"

namespace tacho::report {
namespace {

struct Layout {
  std::size_t number, bar;  // columns
};
// Numbers of more than ten digits need the wide form, which has shorter bars.
constexpr Layout kNarrow{10, 40}, kWide{20, 20};

bool is_wide(const Bucket& bucket) { return bucket.high > 9'999'999'999 || bucket.low < -999'999'999; }

constexpr std::size_t kMostRows = 1000;

void write_rest(TextBuffer& out, const std::vector<Bucket>& buckets) {
  std::uint64_t values = 0;
  for (const Bucket& bucket : std::span(buckets).subspan(kMostRows)) values += bucket.count;
  const double whole = static_cast<double>(buckets.back().high) - static_cast<double>(buckets.front().low);
  out.text(
      fmt::format("... left out: {} of higher values, with {}; all fit with --linear {:.0f}, and tacho "
                  "table --by has each\n",
                  cli::counted(buckets.size() - kMostRows, "row"), cli::counted(values, "value"),
                  std::ceil(whole / (kMostRows / 10))));
}

// Prints "count  share  value" for each row, below a heading, in the given order; at most `top` rows (0:
// all), and a last line that counts the others. Shares are of `total`, which is not 0. `room` is the width of
// a row; 0: no limit.
void write_values(TextBuffer& out, std::string_view label, const std::vector<ValueCount>& rows,
                  std::uint64_t total, std::size_t top, std::size_t room) {
  constexpr std::size_t kBefore = 24;  // columns
  out.text(fmt::format("{:>12}  {:>7}  {}\n", "count", "share", label));
  const std::size_t shown = top == 0 ? rows.size() : std::min(top, rows.size());
  std::uint64_t rest = total;
  for (const ValueCount& row : std::span(rows).first(shown)) {
    const double share = 100.0 * static_cast<double>(row.count) / static_cast<double>(total);
    const std::string value = room > kBefore ? cut_in_the_middle(row.value, room - kBefore) : row.value;
    out.text(fmt::format("{:>12}  {:>6.2f}%  {}\n", row.count, share, value));
    rest -= row.count;
  }
  const std::size_t others = rows.size() - shown;
  if (others == 0) return;
  const double share = 100.0 * static_cast<double>(rest) / static_cast<double>(total);
  out.text(fmt::format("{:>12}  {:>6.2f}%  {} other value{}\n", rest, share, others, others == 1 ? "" : "s"));
}

}  // namespace

void write_distribution(TextBuffer& out, std::string_view label, const std::vector<Bucket>& buckets,
                        Rows rows) {
  const std::size_t shown = rows == Rows::All ? buckets.size() : std::min(buckets.size(), kMostRows);
  const Layout layout = std::ranges::any_of(buckets, is_wide) ? kWide : kNarrow;
  std::uint64_t largest = 1;
  for (const Bucket& bucket : buckets) largest = std::max(largest, bucket.count);
  const std::size_t range = 2 * layout.number + 4;
  const std::size_t indent = layout.number == kNarrow.number ? 5 : 15;
  out.text(fmt::format("{:{}}{:<{}} : count     distribution\n", "", indent, label, range - indent));
  for (const Bucket& bucket : std::span(buckets).first(shown)) {
    if (bucket.left_out != 0)
      out.text(fmt::format("{:>{}}    {} without values\n", "...", layout.number,
                           cli::counted(bucket.left_out, "row")));
    // Counts can be large: the product is taken in floating point, as bcc does.
    const auto product = static_cast<double>(layout.bar) * static_cast<double>(bucket.count);
    const auto stars = std::min(static_cast<std::size_t>(product / static_cast<double>(largest)), layout.bar);
    out.text(fmt::format("{:>{}} -> {:<{}} : {:<8} |", bucket.low, layout.number, bucket.high, layout.number,
                         bucket.count));
    out.fill('*', stars);
    out.blanks(layout.bar - stars);
    out.text("|\n");
  }
  if (shown < buckets.size()) write_rest(out, buckets);
}

Result<RowWidth> parse_row_width(std::string_view text) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  const auto parsed = cli::parse_expression("--linear", text);
  if (!parsed || parsed->nodes.size() != 1 || parsed->root().operation != cli::Operation::Whole ||
      parsed->root().whole == 0 || parsed->root().whole > kMost)
    return use_error("--linear: '" + std::string(text) +
                     "' is no width of rows: a whole number from 1 on, or one with a unit as in 100us or 4k");
  return RowWidth{parsed->root().whole, parsed->root().unit};
}

HistSink::HistSink(Session& session, TextOutput& out, const HistOptions& options)
    : session_(&session),
      out_(&out),
      options_(&options),
      schemas_(session.events(), session.features()),
      step_(options.step.value),
      bits_(options.rows == 0 ? 0 : std::countr_zero(options.rows)),
      intervals_(options.interval) {}

Sink::Flow HistSink::on_sample(const ResolvedSample& sample) {
  // All events are known when the first sample comes.
  if (chosen_.field == nullptr) {
    if (auto chosen = choose(); !chosen) {
      error = std::move(chosen.error());
      return Flow::Stop;
    }
  }
  const auto between = pairs_ ? pairs_->take_sample(sample) : std::nullopt;
  if (pairs_ && pairs_->lacking() != nullptr)
    note_truncated_payload(sample.event_index == chosen_.event ? event_ : first_event_,
                           pairs_->lacking()->name());
  if (sample.event_index != chosen_.event || (pairs_ && !between)) return Flow::Continue;
  if (!intervals_.has(sample)) return Flow::Continue;
  const std::uint64_t time = sample.fields->time;
  intervals_.move_to(count_ == nullptr ? time : readings_.time_of(time, intervals_), [this] { write(); });
  const bool is_added = add_sample(groups_, sample, between);
  if (is_added && has_whole()) add_sample(whole_, sample, between);
  if (!is_added) note_truncated_payload(event_, chosen_.field->name);
  return out_->is_done() ? Flow::Stop : Flow::Continue;
}

void HistSink::note_truncated_payload(const std::string& event, const std::string& field) const {
  session_->diagnostics().add_finding(
      format::Damage::BadRecord, format::Diagnostics::kNoOffset,
      "a payload of '" + event + "' that ends before its field '" + field + "'");
}

// A value that every sample has, when no payload has a field of that name. nullopt: there is no such value,
// or it is not clear which event is meant.
std::optional<ChosenField> HistSink::choose_own(const std::vector<std::string>& names) {
  const OwnValue* const own = find_own_value(options_->field);
  if (own == nullptr || own->is_text || own->name == "time") return std::nullopt;
  std::optional<std::size_t> event;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& attr = session_->events()[i].attr;
    const bool has_no_samples = attr.type == format::abi::kSoftware && attr.config == format::abi::kDummy;
    if (options_->event.empty() ? has_no_samples : names[i] != options_->event) continue;
    if (event) return std::nullopt;
    event = i;
    const PayloadSchema* const schema = schemas_.schema_of(i);
    if (schema != nullptr && field_named(*schema, options_->field) != nullptr) return std::nullopt;
  }
  if (!event) return std::nullopt;
  own_ = own;
  own_field_.name = own->name;
  own_field_.unit = own->unit;
  const PayloadSchema* const schema = schemas_.schema_of(*event);
  return ChosenField{*event, schema == nullptr ? &no_payload_ : schema, &own_field_};
}

Result<> HistSink::choose() {
  const std::vector<std::string> names = event_names(session_->events());
  const auto own = options_->pairs.events.empty() ? choose_own(names) : std::nullopt;
  auto chosen = own ? Result<ChosenField>(*own)
                : options_->pairs.events.empty()
                    ? choose_field(names, schemas_, options_->event, options_->field,
                                   "tacho hist -i " + cli::shell_word(options_->reading.session.input))
                    : choose_pairs(names);
  if (!chosen) return std::move(chosen.error());
  event_ = names[chosen->event];
  std::vector<std::string> keys;
  if (options_->by != kNoKey)
    keys = options_->by.empty() ? default_keys(*chosen->schema) : parse_name_list(options_->by);
  for (const std::string& name : keys) {
    auto key = FieldKey::find_field("--by", name, *chosen->schema, event_);
    if (!key) return std::move(key.error());
    if (!options_->by.empty() && key->hides_own())
      notes_.push_back("tacho hist: --by " + printable(name) + " is the field of '" + printable(event_) +
                       "'; the sample's own is sample." + printable(name));
    keys_.push_back(std::move(*key));
  }
  if (auto checked = check_scale(*chosen->field); !checked) return checked;
  const auto step = step_for(*chosen->field);
  if (!step) return step.error();
  step_ = *step;
  if (chosen->field->format.starts_with("linear:")) {
    const ExpressionValue last = highest_in_slot(*chosen->field, ExpressionValue::of(0));
    step_ = static_cast<std::uint64_t>(last.whole) + 1;
  }
  const bool holds_counts = !pairs_ && own_ == nullptr && !is_total(*chosen->schema, *chosen->field);
  count_ = holds_counts ? counted_fields(*chosen->schema).count : nullptr;
  chosen_ = *chosen;
  return Done{};
}

Result<> HistSink::check_scale(const PayloadField& field) const {
  const std::string_view scale = options_->step.value != 0 ? "--linear" : options_->rows != 0 ? "--log" : "";
  const std::string values = ": the values of '" + field.name + "' ";
  if (is_counted_by_value(field) && !scale.empty())
    return use_error(std::string(scale) + values + "are texts or names, counted one by one");
  if (is_counted_by_value(field) && !options_->percentiles.empty())
    return use_error("--percentiles" + values + "are texts or names, which have no order");
  if (has_slots(field) && !scale.empty())
    return use_error(std::string(scale) + values +
                     "were counted in slots when they were recorded, and are shown in those");
  return Done{};
}

// --linear in the unit of the field: 100us are 100 for a field in microseconds.
Result<std::uint64_t> HistSink::step_for(const PayloadField& field) const {
  const RowWidth& step = options_->step;
  if (step.unit == cli::NumberUnit::None) return step.value;
  const auto unit = field_unit(field.unit);
  if (!unit || unit->kind != step.unit)
    return use_error("--linear: '" + field.name + "' " +
                     (field.unit.empty() ? "has no unit; rows take a plain number"
                                         : "is in " + field.unit + "; this is no width for it"));
  if (step.value % unit->size != 0)
    return use_error("--linear: '" + field.name + "' is in " + field.unit +
                     ", and rows are whole numbers of it");
  return step.value / unit->size;
}

// The times between two events, as a field of the second event.
Result<ChosenField> HistSink::choose_pairs(const std::vector<std::string>& names) {
  auto pairs = EventPairs::find_events(options_->pairs, session_->events(), names, schemas_);
  if (!pairs) return std::move(pairs.error());
  pairs_.emplace(std::move(*pairs));
  first_event_ = names[pairs_->first()];
  between_.name = "time since " + first_event_;
  between_.unit = "ns";
  const PayloadSchema* const schema = schemas_.schema_of(pairs_->second());
  return ChosenField{pairs_->second(), schema == nullptr ? &no_payload_ : schema, &between_};
}

// False when the payload ends before the field.
bool HistSink::add_sample(Groups& groups, const ResolvedSample& sample,
                          std::optional<std::uint64_t> between) const {
  const PayloadField& field = *chosen_.field;
  const auto value = own_ != nullptr ? own_->of(sample)
                     : between       ? FieldValue(*between)
                                     : read_field(field, sample.fields->raw, sample.order);
  if (!value) return false;
  Keys keys;
  for (const FieldKey& key : keys_) keys.push_back(key.named_value(sample, session_->resolver()));
  Group& group = groups.try_emplace(std::move(keys), step_, bits_).first->second;
  const std::uint64_t count = count_of(count_, sample);
  group.total += count;
  if (own_ == nullptr && !between && is_counted_by_value(field)) {
    group.counts[key_value(*value)] += count;
  } else if (const auto number = number_of(*value)) {
    add_number(group, *number, count);
  }
  return true;
}

void HistSink::add_number(Group& group, Int128 number, std::uint64_t count) const {
  group.distribution.add_value(number, count);
  if (options_->percentiles.empty()) return;
  const ExpressionValue low = ExpressionValue::of(number);
  group.values.spread(low, highest_in_slot(*chosen_.field, low), count);
}

void HistSink::write_finished_interval() {
  if (!groups_.empty()) intervals_.move_by_clock([this] { write(); });
}

void HistSink::finish() {
  write();
  if (!has_whole()) return;
  groups_ = std::move(whole_);
  is_whole_ = true;
  write();
}

// Prints the groups since the last time.
void HistSink::write() {
  for (const auto* const entry : in_order()) {
    if (!is_first_ && !options_->is_json) out_->character('\n');
    is_first_ = false;
    if (options_->is_json)
      write_json(entry->first, entry->second);
    else
      write_group(entry->first, entry->second);
    out_->line_end();
  }
  groups_.clear();
}

// By their keys; with --top the largest first.
std::vector<const HistSink::Groups::value_type*> HistSink::in_order() const {
  std::vector<const Groups::value_type*> order;
  for (const auto& group : groups_) order.push_back(&group);
  if (options_->top == 0) return order;
  std::ranges::stable_sort(order,
                           [](const auto* a, const auto* b) { return a->second.total > b->second.total; });
  order.resize(std::min<std::size_t>(order.size(), options_->top));
  return order;
}

std::string HistSink::heading(const Keys& keys, const Group& group) const {
  const Names names = options_->reading.names;
  const PayloadField& field = *chosen_.field;
  std::string text = printable(event_, names) + ": " + printable(field.name, names);
  if (!field.unit.empty()) text += " in " + printable(field.unit, names);
  for (std::size_t i = 0; i < keys_.size(); ++i)
    text += ", " + printable(keys_[i].name(), names) + " " + keys_[i].show(keys[i], names);
  if (intervals_.is_on() && !is_whole_) text += fmt::format(", from {:.6f} s", intervals_.begin_seconds());
  return text + fmt::format(", {} value{}\n", group.total, group.total == 1 ? "" : "s");
}

void HistSink::write_group(const Keys& keys, const Group& group) const {
  const Names names = options_->reading.names;
  const PayloadField& field = *chosen_.field;
  out_->text(heading(keys, group));
  std::string label = pairs_ ? "time" : printable(field.name, names);
  if (!field.unit.empty() && field.unit != field.name) label += " (" + printable(field.unit, names) + ")";
  if (!is_counted_by_value(field)) {
    write_distribution(*out_, label, group.distribution.buckets(),
                       group.distribution.has_steps() ? Rows::Thousand : Rows::All);
    out_->text(percentiles_text(group));
    return;
  }
  write_values(*out_, label, value_counts(group, names), group.total, options_->top,
               options_->reading.room());
}

// The most frequent first.
std::vector<ValueCount> HistSink::value_counts(const Group& group, Names names) const {
  std::vector<ValueCount> rows;
  for (const auto& [value, count] : group.counts)
    rows.push_back({show_key(chosen_.field, value, names), count});
  std::ranges::stable_sort(rows, std::ranges::greater(), &ValueCount::count);
  return rows;
}

namespace {

// Writes a number as a JSON number, unless it is shown by a name or in hexadecimal.
void describe_key(JsonFields& to, const FieldKey& key, const KeyValue& value) {
  const std::string shown = key.show(value, Names::Raw);
  const auto* const bits = std::get_if<std::uint64_t>(&value);
  const auto* const number = std::get_if<std::int64_t>(&value);
  if (bits != nullptr && shown == std::to_string(*bits)) return to.number(key.name(), *bits);
  if (number != nullptr && shown == std::to_string(*number)) return to.signed_number(key.name(), *number);
  if (const auto* const real = std::get_if<double>(&value)) return to.real(key.name(), *real);
  to.text(key.name(), shown);
}

}  // namespace

// Rows without values are left out.
void HistSink::write_json(const Keys& keys, const Group& group) const {
  const PayloadField& field = *chosen_.field;
  JsonFields to(*out_);
  to.text("event", event_);
  to.text("field", field.name);
  if (!field.unit.empty()) to.text("unit", field.unit);
  if (intervals_.is_on() && !is_whole_) to.real("begin", intervals_.begin_seconds());
  if (!keys_.empty()) {
    to.begin_object("keys");
    for (std::size_t i = 0; i < keys_.size(); ++i) describe_key(to, keys_[i], keys[i]);
    to.end_object();
  }
  to.number("count", group.total);
  if (is_counted_by_value(field)) {
    std::vector<ValueCount> rows = value_counts(group, Names::Raw);
    if (options_->top != 0) rows.resize(std::min(rows.size(), options_->top));
    to.begin_list("values");
    for (const ValueCount& row : rows) {
      to.begin_object({});
      to.text("value", row.value);
      to.number("count", row.count);
      to.end_object();
    }
    to.end_list();
  } else {
    to.begin_list("rows");
    for (const Bucket& bucket : group.distribution.buckets()) {
      if (bucket.count == 0) continue;
      to.begin_object({});
      to.json("low", decimal_text(bucket.low));
      to.json("high", decimal_text(bucket.high));
      to.number("count", bucket.count);
      to.end_object();
    }
    to.end_list();
  }
  for (const double percent : options_->percentiles)
    to.json(fmt::format("p{}", percent), fmt::format("{}", group.values.percentile(percent).whole));
  to.finish();
  out_->character('\n');
}

// "p50 812, p99 1204"
std::string HistSink::percentiles_text(const Group& group) const {
  std::string text;
  for (const double percent : options_->percentiles) {
    const ExpressionValue value = group.values.percentile(percent);
    if (!text.empty()) text += ", ";
    text += fmt::format("p{} {}", percent, value.whole);
  }
  return text.empty() ? text : text + "\n";
}

std::vector<std::string> HistSink::notes() const {
  std::vector<std::string> all = notes_;
  if (count_ != nullptr) {
    const auto note =
        note_on_readings(event_, session_->features().environment, readings_, options_->interval);
    if (!note.empty()) all.push_back("tacho hist: " + printable(note));
  }
  if (!pairs_ || pairs_->first() == pairs_->second()) return all;
  const auto add_note = [&all](std::uint64_t number, const std::string& event, std::string_view what) {
    if (number == 0) return;
    all.push_back(fmt::format("tacho hist: {} event{} '{}' {}", number, number == 1 ? "" : "s",
                              printable(event), what));
  };
  add_note(pairs_->without_end(), first_event_, "had no end in the capture");
  add_note(pairs_->without_begin(), event_, "had no begin in it");
  add_note(pairs_->forgotten(), first_event_,
           "of these were given up to bound memory: is --key the right one?");
  return all;
}

}  // namespace tacho::report
