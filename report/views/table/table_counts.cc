#include "report/views/table/table_counts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "cli/message_text.h"
#include "report/command.h"
#include "report/output/field_sinks.h"
#include "report/query/field_choice.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"

namespace tacho::report {
namespace {

// "open, exec and 17 more"
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 20;  // a capture may have thousands of tracepoints
  const std::size_t shown = std::min(names.size(), kMost);
  std::string text = fmt::format("{}", fmt::join(std::span(names).first(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace

// The names of --by, or else of the fields that have the roles of keys.
std::vector<std::string> TableSource::keys_of(const TableRequest& question, const Session& session) {
  if (!question.by.empty()) return parse_name_list(question.by);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < session.events().size(); ++i) {
    const PayloadSchema* const schema =
        question.event.empty() || chosen_[i] ? schemas_->schema_of(i) : nullptr;
    if (schema == nullptr) continue;
    for (const std::string& name : default_table_keys(*schema))
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  if (names.empty()) names.emplace_back("comm");
  return names;
}

Result<TableEvent> TableSource::bind(const TableRequest& question, const format::Event& event,
                                     const PayloadSchema* schema) {
  TableEvent bound;
  if (schema != nullptr) {
    const CountedFields counted = counted_fields(*schema);
    bound.count = counted.count;
    bound.how.sum = counted.sum;
  }
  value_ = question.value ? &*question.value : default_value_ ? &*default_value_ : nullptr;
  if (value_ != nullptr) {
    auto value = bind_value(question, event, schema);
    if (!value) return std::move(value.error());
    bound.value = std::move(*value);
  }
  for (const std::string& name : key_names_) {
    auto key = FieldKey::find_field("--by", name, schema != nullptr ? *schema : empty_, event.name);
    if (!key) return std::move(key.error());
    bound.keys.push_back(std::move(*key));
  }
  if (!bound.value || schema == nullptr) return bound;
  if (question.value) bound.how.sum = nullptr;
  bound.how.is_sum = bound.how.sum != nullptr && bound.how.sum->name == value_->source;
  const PayloadField* const field = field_named(*schema, value_->source);
  if (field == nullptr) return bound;
  if (has_slots(*field)) bound.how.slots = field;
  bound.how.is_total = question.value && is_total(*schema, *field);
  return bound;
}

// nullopt when there is no --value and the event lacks the default value.
Result<std::optional<BoundExpression>> TableSource::bind_value(const TableRequest& question,
                                                               const format::Event& event,
                                                               const PayloadSchema* schema) const {
  auto value = BoundExpression::bind("--value", *value_, schema);
  if (!value) return std::move(value.error());
  if (!question.value && !value->missing().empty()) return std::optional<BoundExpression>();
  if (!value->missing().empty()) {
    const auto& node = value_->nodes[value->missing().front()];
    std::string what = "'" + event.name + "' has no such field; every sample has " + own_value_names();
    if (schema != nullptr) {
      what += ", and it has";
      for (const PayloadField& field : schema->fields) what += " " + field.name;
    }
    return cli::error_at("--value", value_->source, node.at, what);
  }
  if (value->is_text())
    return use_error("--value: '" + value_->source + "' is a text, which has no sum; make it a key: --by " +
                     value_->source);
  return std::optional(std::move(*value));
}

bool TableSource::has_keys(const format::Event& event, const PayloadSchema* schema) const {
  return std::ranges::all_of(key_names_, [&](const std::string& name) {
    return bool(FieldKey::find_field("--by", name, schema != nullptr ? *schema : empty_, event.name));
  });
}

// The default value: the value field of the first event that has one.
void TableSource::take_default_value(const PayloadSchema* schema) {
  if (schema == nullptr) return;
  const PayloadField* field = value_field(*schema);
  if (field == nullptr) field = counted_fields(*schema).sum;
  if (field == nullptr || field->kind == format::FieldKind::Text || is_list(*field)) return;
  auto parsed = cli::parse_expression("--value", field->name);
  if (!parsed) return;  // the name cannot stand in an expression
  default_value_ = std::move(*parsed);
  unit_ = field->unit;
}

Result<> TableSource::find_events(const TableRequest& question, Session& session) {
  const format::EventSet& events = session.events();
  schemas_.emplace(events, session.features());
  const std::vector<std::string> names = event_names(events);
  EventChoice choice = choose_events(parse_name_list(question.event), names);
  if (!question.event.empty() && choice.unknown) return not_one_event("--event", *choice.unknown, names);
  chosen_ = std::move(choice.chosen);
  key_names_ = keys_of(question, session);
  // The dummy event, which records mappings, has no samples.
  const auto is_dummy = [&](std::size_t i) {
    return events[i].attr.type == format::abi::kSoftware && events[i].attr.config == format::abi::kDummy;
  };
  const auto is_chosen = [&](std::size_t i) { return question.event.empty() ? !is_dummy(i) : chosen_[i]; };
  const bool has_default = !question.value && !question.only_counts;
  for (std::size_t i = 0; i < events.size() && has_default && !default_value_; ++i)
    if (is_chosen(i) && (question.by.empty() || has_keys(events[i], schemas_->schema_of(i))))
      take_default_value(schemas_->schema_of(i));
  std::optional<Error> failed;
  int fit = -1;  // of the event that the error is about
  for (std::size_t i = 0; i < events.size(); ++i) {
    events_.emplace_back();
    if (!is_chosen(i)) continue;
    auto bound = bind(question, events[i], schemas_->schema_of(i));
    if (!bound) {
      // Prefer an event with a payload and the keys: probably the intended one.
      const bool has_all_keys = has_keys(events[i], schemas_->schema_of(i));
      const int fits = (has_all_keys ? 2 : 0) + (schemas_->schema_of(i) != nullptr ? 1 : 0);
      if (fits > fit) failed = std::move(bound.error());
      fit = std::max(fit, fits);
      // No note when the user named a value or keys that the event lacks: the user knows that it is left out.
      if (!question.value && (question.by.empty() || has_all_keys)) left_out_.push_back(names[i]);
      continue;
    }
    if (value_ != nullptr && !bound->value) only_counted_.push_back(names[i]);
    bound->name = names[i];
    events_.back() = std::move(*bound);
  }
  const auto count = std::ranges::count_if(events_, [](const auto& event) { return event.has_value(); });
  if (count == 0 && left_out_.size() > 1) {
    return use_error("the events have no keys in common; take --event NAME or --by comm: the events are " +
                     listed(left_out_) + "; for example: --event " + cli::shell_word(left_out_.front()));
  }
  if (count == 0) return failed ? std::move(*failed) : use_error("the capture has no events");
  if (count > 1 && std::ranges::find(key_names_, "event") == key_names_.end()) {
    key_names_.insert(key_names_.begin(), "event");
    for (auto& event : events_) {
      if (!event) continue;
      auto key = FieldKey::find_field("--by", "sample.event", empty_, event->name);
      if (!key) return std::move(key.error());
      event->keys.insert(event->keys.begin(), std::move(*key));
    }
  }
  return Done{};
}

TableEvent* TableSource::event(std::size_t index) {
  return index < events_.size() && events_[index] ? &*events_[index] : nullptr;
}

bool TableSource::has_values() const {
  return std::ranges::any_of(events_, [](const auto& event) { return event && event->value; });
}

std::string TableSource::note_on_events() const {
  std::string note;
  if (!left_out_.empty()) {
    note = fmt::format("the table is without {}, which {} not its keys; --event {} shows {}",
                       listed(left_out_), left_out_.size() > 1 ? "have" : "has",
                       cli::shell_word(left_out_.front()), left_out_.size() > 1 ? "the first of them" : "it");
  }
  if (!only_counted_.empty() && has_values()) {
    note += fmt::format("{}{} {} only counted: no field is called '{}' there; --value chooses the value",
                        note.empty() ? "" : ". ", listed(only_counted_),
                        only_counted_.size() > 1 ? "are" : "is", value_->source);
  }
  return note;
}

std::string TableSource::title(Names names) const {
  std::string title;
  for (const auto& event : events_)
    if (event) title.append(title.empty() ? "" : ", ").append(printable(event->name, names));
  if (!has_values()) return title;
  title += ": " + printable(value_->source, names);
  if (!unit_.empty()) title += " in " + printable(unit_, names);
  if (std::ranges::any_of(events_, [](const auto& event) { return event && event->how.slots != nullptr; }))
    title += ", counted in slots";
  return title;
}

std::string TableSource::note_on_slots() const {
  for (const auto& event : events_) {
    if (!event || event->how.slots == nullptr || event->how.sum != nullptr) continue;
    return fmt::format("'{}' was counted in slots, and sum and mean are those of the least values in them",
                       event->how.slots->name);
  }
  return {};
}

namespace {

using Of = TableColumn::Of;

constexpr std::pair<std::string_view, Of> kNames[] = {
    {"count", Of::Count}, {"sum", Of::Sum},     {"mean", Of::Mean},         {"avg", Of::Mean},
    {"min", Of::Least},   {"max", Of::Largest}, {"median", Of::Percentile},
};

// "p99.9" -> 99.9
std::optional<double> percent_of(std::string_view name) {
  return name.starts_with('p') ? parse_percentage(name.substr(1)) : std::nullopt;
}

// Parses "count,sum,min,mean,p50,p99.9,max". An error lists the columns that exist.
Result<std::vector<TableColumn>> parse_columns(std::string_view option, std::string_view text) {
  std::vector<TableColumn> columns;
  for (const std::string& name : parse_name_list(text)) {
    const auto row = std::ranges::find(kNames, name, &std::pair<std::string_view, Of>::first);
    if (row != std::end(kNames)) {
      columns.push_back({name, row->second, 50});
    } else if (const auto percent = percent_of(name)) {
      columns.push_back({name, Of::Percentile, *percent});
    } else {
      return use_error(std::string(option) + ": there is no column '" + name +
                       "'; there are count, sum, mean, min, max, median, and percentiles as p99 or p99.9");
    }
  }
  return columns;
}

}  // namespace

ExpressionValue TableColumn::value(const TableRow& row) const {
  switch (of) {
    case Of::Count:
      return ExpressionValue::of(row.samples);
    case Of::Sum:
      return row.values.sum();
    case Of::Mean:
      return row.values.mean();
    case Of::Least:
      return row.values.least();
    case Of::Largest:
      return row.values.largest();
    case Of::Percentile:
      break;
  }
  return row.values.percentile(percent);
}

std::string show_number(const ExpressionValue& value) {
  if (value.kind == ExpressionValue::Kind::Real) return fmt::format("{:.3f}", value.real);
  if (value.kind == ExpressionValue::Kind::Whole) return fmt::format("{}", value.whole);
  return "-";
}

namespace {

constexpr std::size_t kGap = 2;  // blanks between columns

std::string seconds(double time) { return fmt::format("{:.6f}", time); }

// Names and keys are safe to print already.
void write_csv(TextOutput& out, const TableHead& head, std::optional<double> begin,
               const std::vector<TableLine>& lines, bool is_first) {
  const auto line = [&out](const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i != 0) out.character(',');
      out.text(cells[i]);
    }
    out.text("\r\n");
    out.line_end();
  };
  if (is_first) {
    std::vector<std::string> cells;
    if (head.has_begin) cells.emplace_back("begin");
    for (const std::string& name : head.keys) cells.push_back(printable_csv(name, Names::Raw));
    cells.insert(cells.end(), head.numbers.begin(), head.numbers.end());
    line(cells);
  }
  for (const TableLine& one : lines) {
    std::vector<std::string> cells;
    if (head.has_begin) cells.push_back(begin ? seconds(*begin) : std::string());
    for (const TableKey& key : one.keys) cells.push_back(printable_csv(key.text, Names::Raw));
    for (const ExpressionValue& number : one.numbers)
      cells.push_back(number.is_nothing() ? "" : show_number(number));
    line(cells);
  }
}

void json_number(JsonFields& fields, const std::string& name, const ExpressionValue& number) {
  if (number.kind == ExpressionValue::Kind::Real) return fields.real(name, number.real);
  if (number.is_nothing()) return fields.json(name, "null");
  fields.json(name, fmt::format("{}", number.whole));
}

void write_json(TextOutput& out, const TableHead& head, std::optional<double> begin,
                const std::vector<TableLine>& lines) {
  for (const TableLine& one : lines) {
    JsonFields fields(out);
    if (begin) fields.real("begin", *begin);
    for (std::size_t i = 0; i < one.keys.size(); ++i) {
      const auto& [text, is_number] = one.keys[i];
      is_number ? fields.json(head.keys[i], text) : fields.text(head.keys[i], text);
    }
    for (std::size_t i = 0; i < one.numbers.size(); ++i) json_number(fields, head.numbers[i], one.numbers[i]);
    fields.finish();
    out.end_line();
  }
}

// Text keys are aligned left, numbers right.
void write_text(TextOutput& out, const TableHead& head, std::optional<double> begin,
                const std::vector<TableLine>& lines, bool is_first) {
  std::vector<std::vector<std::string>> cells;
  std::vector<std::string> names = head.keys;
  names.insert(names.end(), head.numbers.begin(), head.numbers.end());
  std::vector<std::size_t> widths;
  for (const std::string& name : names) widths.push_back(name.size());
  std::vector<bool> is_right(names.size(), true);
  for (const TableLine& one : lines) {
    for (std::size_t i = 0; i < one.keys.size(); ++i) is_right[i] = is_right[i] && one.keys[i].is_number;
    auto& row = cells.emplace_back();
    for (const TableKey& key : one.keys) row.push_back(key.text);
    for (const ExpressionValue& number : one.numbers) row.push_back(show_number(number));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::vector<bool> are_names = is_right;
  are_names.flip();
  fit_columns(widths, are_names, kGap, head.room);
  const auto line = [&](std::vector<std::string> row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i != 0) out.blanks(kGap);
      if (are_names[i] && head.room != 0) row[i] = cut_in_the_middle(row[i], widths[i]);
      if (is_right[i]) {
        out.padded(row[i], widths[i]);
      } else if (i + 1 == row.size()) {
        out.text(row[i]);  // without blanks at the line's end
      } else {
        out.left(row[i], widths[i]);
      }
    }
    out.end_line();
  };
  if (!is_first) out.character('\n');
  out.text(head.title);
  if (begin) out.text(", from " + seconds(*begin) + " s");
  out.character('\n');
  line(names);
  for (const auto& row : cells) line(row);
}

}  // namespace

void write_table(TextOutput& out, TableForm form, const TableHead& head, std::optional<double> begin,
                 const std::vector<TableLine>& lines, bool is_first) {
  switch (form) {
    case TableForm::Csv:
      return write_csv(out, head, begin, lines, is_first);
    case TableForm::Json:
      return write_json(out, head, begin, lines);
    case TableForm::Text:
      return write_text(out, head, begin, lines, is_first);
  }
}

namespace {

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

// " -> 15" after 8, the least value of a slot.
std::string end_of_slot(const FieldKey& key, const KeyValue& value) {
  if (key.field() == nullptr || !has_slots(*key.field())) return {};
  const auto* const low = std::get_if<std::uint64_t>(&value);
  return low == nullptr ? std::string() : " -> " + decimal_text(slot_of(*key.field(), *low).highest);
}

}  // namespace

Result<> TableCounts::find_columns(const TableRequest& question, const std::string& columns,
                                   const std::string& sort, Session& session) {
  session_ = &session;
  if (auto found = source_.find_events(question, session); !found) return found;
  const std::string_view usual = source_.has_values() ? "count,sum,mean,min,p50,p99,max" : "count";
  auto parsed = parse_columns("--columns", columns.empty() ? usual : columns);
  if (!parsed) return std::move(parsed.error());
  columns_ = std::move(*parsed);
  return find_order(sort);
}

TableHead TableCounts::head(Names names) const {
  TableHead head;
  for (const std::string& name : source_.key_names()) head.keys.push_back(printable(name, names));
  for (const TableColumn& column : columns_) head.numbers.push_back(column.name);
  head.title = source_.title(names);
  return head;
}

TableCounts::Keys TableCounts::keys_of(const TableEvent& event, const ResolvedSample& sample) const {
  Keys keys;
  keys.reserve(event.keys.size());
  for (const FieldKey& key : event.keys) keys.push_back(key.named_value(sample, session_->resolver()));
  return keys;
}

void TableCounts::add_row(Rows& rows, Keys&& keys, TableEvent& event, const ResolvedSample& sample) {
  auto& [shown_by, row] = rows[std::move(keys)];
  shown_by = &event;
  const std::uint64_t count = count_of(event.count, sample);
  row.samples += count;
  if (!event.value) return;
  const ExpressionValue value = event.value->value(sample);
  add_values(row.values, event.how, value, count, sample);
}

Result<> TableCounts::find_order(const std::string& sort) {
  const std::string name = !sort.empty() ? sort : source_.has_values() ? "sum" : "count";
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

std::vector<const TableCounts::Rows::value_type*> TableCounts::in_order(const Rows& rows) const {
  std::vector<const Rows::value_type*> order;
  for (const auto& row : rows) order.push_back(&row);
  if (sort_key_) {
    std::ranges::stable_sort(order, [this](const auto* a, const auto* b) {
      return compare(a->first[*sort_key_], b->first[*sort_key_]) < 0;
    });
    return order;
  }
  std::vector<std::pair<ExpressionValue, const Rows::value_type*>> valued;
  for (const auto* const row : order) valued.emplace_back(sort_column_.value(row->second.row), row);
  std::ranges::stable_sort(valued, [](const auto& a, const auto& b) {
    if (b.first.is_nothing()) return !a.first.is_nothing();
    return apply(cli::Operation::Greater, a.first, b.first).is_true();
  });
  std::ranges::transform(valued, order.begin(), [](const auto& one) { return one.second; });
  return order;
}

TableLine TableCounts::line_of(const Rows::value_type& row, Names names, TableForm form) const {
  TableLine line;
  const auto& keys = row.second.event->keys;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const KeyValue& value = row.first[i];
    TableKey key{keys[i].show(value, names)};
    if (form == TableForm::Text) key.text += end_of_slot(keys[i], value);
    const bool is_text =
        std::holds_alternative<std::string>(value) || std::holds_alternative<std::monostate>(value);
    key.is_number = !is_text && is_json_number(key.text);
    line.keys.push_back(std::move(key));
  }
  for (const TableColumn& column : columns_) line.numbers.push_back(column.value(row.second.row));
  return line;
}

}  // namespace tacho::report
