#include "report/views/script/script_columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/nearest.h"
#include "format/records/perf_abi.h"
#include "report/output/field_sinks.h"
#include "report/output/terminal.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"
#include "report/samples/resolver.h"

namespace tacho::report {
namespace {

constexpr std::string_view kAuto = "auto", kAll = "all", kSymbol = "sym", kDso = "dso", kOwn = "sample.";
constexpr std::size_t kCommWidth = 15;  // the kernel's maximum for a thread's name
constexpr std::size_t kGap = 1;         // blanks between columns

// Whether it is perf's dummy event, which carries mappings and has no samples.
bool is_dummy(const format::Event& event) {
  return event.attr.type == format::abi::kSoftware && event.attr.config == format::abi::kDummy;
}

// Whether the field's values are right-aligned in their column.
bool is_plain_number(const PayloadField& field) {
  const bool is_counted = field.kind == format::FieldKind::Unsigned ||
                          field.kind == format::FieldKind::Signed || field.kind == format::FieldKind::Float;
  return is_counted && !is_list(field) && !is_named_address(field);
}

ColumnValue text_cell(std::string text) {
  return {text.empty() ? ColumnValue::Kind::Nothing : ColumnValue::Kind::Text, std::move(text)};
}

// JSON has no octal or hexadecimal numbers.
bool is_decimal(const std::string& text) {
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  const bool is_digits =
      text.size() > first && text.find_first_not_of("0123456789", first) == std::string::npos;
  return is_digits && (text[first] != '0' || text.size() == first + 1);
}

}  // namespace

Columns::Columns(Session& session) : session_(&session) {
  schemas_ = std::make_shared<EventSchemas>(session.events(), session.features());
  EventFilter taken(session.filter().events);
  for (std::size_t i = 0; i < session.events().size(); ++i) {
    event_names_.push_back(session.events()[i].name);
    is_taken_.push_back(taken.takes(session.events(), i));
    schemas_of_.push_back(is_taken_.back() ? schemas_->schema_of(i) : nullptr);
  }
}

Result<Columns> Columns::find_columns(std::string_view list, Session& session) {
  Columns found(session);
  for (const std::string& name : parse_name_list(list)) {
    if (auto added = found.add_column(name); !added) return std::move(added.error());
  }
  if (found.columns_.empty()) return use_error("--columns: names no column");
  const bool has_fields =
      std::ranges::any_of(found.columns_, [](const Column& column) { return column.what == What::Fields; });
  for (std::size_t i = 0; i < found.event_names_.size(); ++i) {
    const bool has_one = std::ranges::any_of(found.columns_, [i](const Column& column) {
      return column.what == What::Fields && column.fields[i] != nullptr;
    });
    found.has_line_.push_back(!has_fields || has_one);
  }
  return found;
}

Result<> Columns::add_column(std::string_view name) {
  if (name == kAuto || name == kAll) {
    add_usual(name == kAll);
    return Done{};
  }
  if (!is_own_name(name) && add_field(name) > 0) return Done{};
  Column column{std::string(name), What::Own, find_own_value(name), {}, {}, false};
  if (column.own != nullptr) {
    column.is_number = !column.own->is_text;
    if (column.own->name == "event") column.what = What::Event;
  } else if (name == kSymbol || name == kDso) {
    column.what = name == kSymbol ? What::Symbol : What::Dso;
  } else {
    const auto known = known_names();
    std::string all;
    for (const std::string& one : known) all.append(all.empty() ? "" : ", ").append(one);
    return use_error(fmt::format("--columns: there is no '{}' here{}; there are {}", name,
                                 cli::suggestion(name, known), all));
  }
  columns_.push_back(std::move(column));
  return Done{};
}

// Adds a column of the fields with this name, if there are any. Returns how many events have one.
std::size_t Columns::add_field(std::string_view name) {
  Column column{std::string(name), What::Fields, nullptr, {}, {}, true};
  std::size_t events = 0;
  for (std::size_t i = 0; i < schemas_of_.size(); ++i) {
    const PayloadSchema* const schema = schemas_of_[i];
    column.fields.push_back(nullptr);
    column.number_texts.emplace_back();
    if (schema == nullptr) continue;
    const auto field = std::ranges::find(schema->fields, name, &PayloadField::name);
    if (field == schema->fields.end()) continue;
    column.fields.back() = &*field;
    column.number_texts.back() =
        kernel_number_text(event_names_[i], *field, session_->features().environment.arch.value_or(""));
    column.is_number = column.is_number && is_plain_number(*field) && !column.number_texts.back();
    ++events;
  }
  if (events > 0) columns_.push_back(std::move(column));
  return events;
}

// The fields of the events that are taken, each name once.
Columns::Described Columns::described_fields() const {
  Described described;
  for (std::size_t i = 0; i < event_names_.size(); ++i) {
    const format::Event& event = session_->events()[i];
    if (is_dummy(event) || !is_taken_[i]) continue;
    ++described.of;
    if (schemas_of_[i] == nullptr) continue;
    ++described.count;
    for (const PayloadField& field : schemas_of_[i]->fields) {
      const bool is_known = std::ranges::find(described.fields, field.name) != described.fields.end();
      if (field.role != "stack" && !is_known) described.fields.push_back(field.name);
    }
  }
  return described;
}

// Time and thread, and the events' own fields; of events without any the function.
void Columns::add_usual(bool is_all) {
  const Described described = described_fields();
  const auto& fields = described.fields;
  const auto add_own = [&](std::string_view name) {
    const bool is_hidden = std::ranges::find(fields, name) != fields.end();
    static_cast<void>(add_column(is_hidden ? std::string(kOwn) + std::string(name) : std::string(name)));
  };
  for (const std::string_view name : {"time", "comm", "pid"}) add_own(name);
  if (is_all) add_own("tid");
  if (is_all || described.count == 0) add_own("cpu");
  if (is_all || described.of > 1) add_own("event");
  if (described.count == 0) static_cast<void>(add_column(kSymbol));
  for (const std::string& name : fields) add_field(name);
}

std::vector<std::string> Columns::known_names() {
  std::vector<std::string> names{std::string(kAuto), std::string(kAll)};
  for (const OwnValue& own : own_values()) names.emplace_back(own.name);
  names.emplace_back(kSymbol);
  names.emplace_back(kDso);
  for (const PayloadSchema* const schema : schemas_of_) {
    if (schema == nullptr) continue;
    for (const PayloadField& field : schema->fields)
      if (std::ranges::find(names, field.name) == names.end()) names.push_back(field.name);
  }
  return names;
}

std::size_t Columns::usual_width(std::size_t index) const {
  constexpr std::size_t kTime = 14, kId = 7, kCpu = 3, kNumber = 9;
  const Column& column = columns_[index];
  if (column.what != What::Own) return column.is_number ? kNumber : 0;
  if (column.own->name == "comm") return kCommWidth;
  if (column.own->name == "time") return kTime;
  if (column.own->name == "cpu") return kCpu;
  return column.own->name == "pid" || column.own->name == "tid" ? kId : 0;
}

std::string Columns::element_text(const PayloadField& field, const FieldValue& value,
                                  const ResolvedSample& sample) {
  if (const auto* text = std::get_if<std::string_view>(&value)) return std::string(*text);
  if (is_named_address(field)) {
    if (auto name = address_name(session_->resolver(), sample, bits_of(value)); !name.empty()) return name;
  }
  return show_value(field, value, Names::Raw);
}

ColumnValue Columns::field_cell(const Column& column, const ResolvedSample& sample) {
  const PayloadField& field = *column.fields[sample.event_index];
  const NumberText& number_text = column.number_texts[sample.event_index];
  const format::Bytes payload = sample.fields->raw;
  if (is_internet_address(field)) return text_cell(internet_address(field, payload, sample.order));
  ColumnValue cell;
  if (!is_list(field)) {
    const auto value = read_field(field, payload, sample.order);
    if (!value) return cell;
    if (number_text) {
      const auto* const whole = std::get_if<std::int64_t>(&*value);
      cell.text = number_text(whole != nullptr ? *whole : static_cast<std::int64_t>(bits_of(*value)));
    } else {
      cell.text = element_text(field, *value, sample);
    }
    cell.kind =
        is_plain_number(field) && is_decimal(cell.text) ? ColumnValue::Kind::Number : ColumnValue::Kind::Text;
    return cell;
  }
  std::string text;
  const std::uint32_t count = shown_elements(field, payload, sample.order);
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto value = read_field(field, payload, sample.order, i);
    if (!value) break;
    if (i > 0) text += ',';
    text += element_text(field, *value, sample);
  }
  return text_cell(std::move(text));
}

ColumnValue Columns::cell(std::size_t index, const ResolvedSample& sample) {
  if (sample.event_index >= event_names_.size())
    return {};  // an event that came in a pipe after find_columns()
  const Column& column = columns_[index];
  switch (column.what) {
    case What::Fields:
      return column.fields[sample.event_index] != nullptr ? field_cell(column, sample) : ColumnValue{};
    case What::Event:
      return {ColumnValue::Kind::Text, event_names_[sample.event_index]};
    case What::Symbol:
    case What::Dso: {
      const symbolize::Frame& frame = session_->resolver().frame(*sample.location);
      if (column.what == What::Symbol) return text_cell(std::string(frame.function));
      return frame.module != nullptr ? text_cell(std::string(frame.module->path)) : ColumnValue{};
    }
    case What::Own:
      break;
  }
  const auto value = column.own->of(sample);
  if (!value) return {};
  if (const auto* text = std::get_if<std::string_view>(&*value))
    return {ColumnValue::Kind::Text, std::string(*text)};
  if (const auto* seconds = std::get_if<double>(&*value))
    return {ColumnValue::Kind::Number, fmt::format("{:.6f}", *seconds)};
  const bool is_signed = std::holds_alternative<std::int64_t>(*value);
  return {ColumnValue::Kind::Number, is_signed ? fmt::format("{}", std::get<std::int64_t>(*value))
                                               : fmt::format("{}", std::get<std::uint64_t>(*value))};
}

void ColumnsText::write(TextOutput& out, const ResolvedSample& sample) {
  if (!columns_.has_line(sample.event_index)) return;
  Line line;
  line.reserve(columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i) line.push_back(columns_.cell(i, sample));
  if (form_ == ColumnsForm::Csv) return write_csv(out, line);
  if (form_ == ColumnsForm::Json) return write_json(out, line);
  auto cells = shown(line);
  if (is_begun_) {
    widen(cells);
    return write_text(out, cells);
  }
  kept_.push_back(std::move(cells));
  if (kept_.size() == kLinesAhead) flush(out);
}

void ColumnsText::flush(TextOutput& out) {
  if (kept_.empty()) return;
  // Later lines may be wider: leaves room for usual values.
  for (std::size_t i = 0; i < widths_.size(); ++i)
    widths_[i] = std::max(columns_.name(i).size(), columns_.usual_width(i));
  for (const auto& cells : kept_) widen(cells);
  is_begun_ = true;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < columns_.size(); ++i) names.push_back(printable(columns_.name(i), names_));
  write_text(out, std::move(names));
  for (const auto& cells : kept_) write_text(out, cells);
  kept_ = {};
}

std::vector<std::string> ColumnsText::shown(const Line& line) const {
  std::vector<std::string> cells;
  cells.reserve(line.size());
  for (const ColumnValue& cell : line)
    cells.push_back(cell.kind == ColumnValue::Kind::Nothing ? "-" : printable(cell.text, names_));
  return cells;
}

void ColumnsText::widen(const std::vector<std::string>& cells) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    widths_[i] = std::max(widths_[i], std::min(cells[i].size(), kWidest));
    needed_[i] = std::max({needed_[i], widths_[i], cells[i].size()});
  }
}

// Cuts texts if the columns do not fit at their present widths.
void ColumnsText::fit(std::vector<std::string>& cells, std::vector<std::size_t>& widths) const {
  std::vector<bool> are_names;
  for (std::size_t i = 0; i < cells.size(); ++i) are_names.push_back(!columns_.is_number(i));
  std::vector<std::size_t> fitted = needed_;
  fit_columns(fitted, are_names, kGap, room_);
  if (fitted == needed_) return;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (are_names[i]) cells[i] = cut_in_the_middle(cells[i], fitted[i]);
    widths[i] = std::min(widths[i], fitted[i]);
  }
}

void ColumnsText::write_text(TextOutput& out, std::vector<std::string> cells) {
  std::vector<std::size_t> widths = widths_;
  if (room_ != 0) fit(cells, widths);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i != 0) out.blanks(kGap);
    if (columns_.is_number(i)) {
      out.padded(cells[i], widths[i]);
    } else if (i + 1 == cells.size()) {
      out.text(cells[i]);  // no padding in the last column
    } else {
      out.left(cells[i], widths[i]);
    }
  }
  out.character('\n');
}

void ColumnsText::write_csv(TextOutput& out, const Line& line) {
  for (std::size_t i = 0; !is_begun_ && i < columns_.size(); ++i) {
    if (i != 0) out.character(',');
    out.text(printable_csv(columns_.name(i), names_));
    if (i + 1 == columns_.size()) out.text("\r\n");
  }
  is_begun_ = true;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i != 0) out.character(',');
    out.text(printable_csv(line[i].text, names_));
  }
  out.text("\r\n");
}

void ColumnsText::write_json(TextOutput& out, const Line& line) {
  JsonFields fields(out);
  for (std::size_t i = 0; i < line.size(); ++i) {
    switch (line[i].kind) {
      case ColumnValue::Kind::Nothing:
        fields.json(columns_.name(i), "null");
        break;
      case ColumnValue::Kind::Number:
        fields.json(columns_.name(i), line[i].text);
        break;
      case ColumnValue::Kind::Text:
        fields.text(columns_.name(i), line[i].text);
        break;
    }
  }
  fields.finish();
  out.character('\n');
}

}  // namespace tacho::report
