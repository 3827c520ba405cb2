#include "report/views/script/script_forms.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/nearest.h"
#include "report/output/terminal.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"
#include "report/samples/resolver.h"

namespace tacho::report {
namespace {

namespace abi = format::abi;

void describe_frame(FieldSink& to, const symbolize::Frame& frame) {
  to.hex("ip", frame.ip.value);
  to.hex("address", frame.shown_address);
  if (!frame.function.empty()) {
    to.text("symbol", frame.function);
    if (!frame.is_inlined) to.number("offset", frame.shown_address - frame.function_start);
  }
  if (frame.module != nullptr) to.text("dso", frame.module->path);
  if (!frame.function.empty() && frame.is_guess) to.flag("unsure", true);
  if (frame.is_unnamed) to.text("kind", "unnamed");
  if (frame.line_state == symbolize::LineState::Known && frame.line != 0) {
    to.text("file", frame.file);
    to.number("line", frame.line);
  }
  if (frame.is_inlined) to.flag("inlined", true);
}

// Values that a sample has if its event recorded them.
struct NumberRow {
  abi::SampleType bit;
  void (*describe)(FieldSink& to, const format::Sample& sample);
};

constexpr NumberRow kNumbers[] = {
    {abi::kSampleAddr, [](FieldSink& to, const format::Sample& s) { to.hex("addr", s.addr); }},
    {abi::kSampleWeight, [](FieldSink& to, const format::Sample& s) { to.number("weight", s.weight); }},
    {abi::kSampleWeightStruct, [](FieldSink& to, const format::Sample& s) { to.number("weight", s.weight); }},
    {abi::kSampleDataSrc,
     [](FieldSink& to, const format::Sample& s) { to.hex("data_source", s.data_source); }},
    {abi::kSamplePhysAddr, [](FieldSink& to, const format::Sample& s) { to.hex("phys_addr", s.phys_addr); }},
    {abi::kSampleCgroup, [](FieldSink& to, const format::Sample& s) { to.number("cgroup", s.cgroup); }},
};

}  // namespace

// In a pipe, events come with the records.
const std::string& ScriptJson::name_of_event(std::size_t index) {
  while (event_names_.size() <= index) event_names_.push_back(session_->events()[event_names_.size()].name);
  return event_names_[index];
}

void ScriptJson::describe_numbers(FieldSink& to, const ResolvedSample& sample) const {
  const format::EventAttr& attr = sample.event().attr;
  const format::Sample& fields = *sample.fields;
  if (attr.samples(abi::kSampleTid)) {
    to.number("pid", fields.pid);
    to.number("tid", fields.tid);
  }
  if (attr.samples(abi::kSampleCpu)) to.number("cpu", fields.cpu);
  if (attr.samples(abi::kSampleTime)) to.number("time", fields.time);
}

// Writes the payload by its description; without one, as bytes.
void ScriptJson::describe_content(FieldSink& to, const ResolvedSample& sample) {
  if (!sample.event().attr.samples(abi::kSampleRaw)) return;
  const PayloadSchema* const schema = schemas_.schema_of(sample.event_index);
  if (schema == nullptr) return to.bytes("raw", sample.fields->raw);
  to.begin_object("fields");
  describe_payload(to, *schema, sample.fields->raw, sample.order);
  to.end_object();
  if (has_named_addresses(*schema)) describe_addresses(to, *schema, sample);
}

// Writes the functions at the payload's addresses, by field: one frame, or a list of frames.
void ScriptJson::describe_addresses(FieldSink& to, const PayloadSchema& schema,
                                    const ResolvedSample& sample) {
  to.begin_object("symbols");
  for (const PayloadField& field : schema.fields) {
    if (!is_named_address(field)) continue;
    if (is_list(field)) to.begin_list(field.name);
    const std::uint32_t count = is_list(field) ? shown_elements(field, sample.fields->raw, sample.order) : 1;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto value = read_field(field, sample.fields->raw, sample.order, i);
      if (!value) break;
      to.begin_object(is_list(field) ? std::string_view() : std::string_view(field.name));
      if (const auto* const frame = frame_at(session_->resolver(), sample, bits_of(*value)))
        describe_frame(to, *frame);
      to.end_object();
    }
    if (is_list(field)) to.end_list();
  }
  to.end_object();
}

// The frames of one address, innermost first, joined by commas; usually one.
std::string_view ScriptJson::location_json(const Location& location) {
  if (const auto known = frames_.find_text(location.id); known.data() != nullptr) return known;
  TextBuffer made;
  for (const symbolize::Frame& frame : resolver_->frames(location)) {
    if (made.size() > 0) made.character(',');
    JsonFields to(made);
    describe_frame(to, frame);
    to.finish();
  }
  return frames_.keep(location.id, made.view());
}

std::string_view ScriptJson::stack_json(const ResolvedSample& sample) {
  stack_.clear();
  stack_.character('[');
  const auto add = [&](const Location& location) {
    if (stack_.size() > 1) stack_.character(',');
    stack_.text(location_json(location));
  };
  if (sample.stack == nullptr) {
    add(*sample.location);
  } else {
    for (const LocationId number : sample.stack->frames) add(resolver_->location(number));
  }
  stack_.character(']');
  return stack_.view();
}

void ScriptJson::write(TextBuffer& out, const ResolvedSample& sample) {
  const format::EventAttr& attr = sample.event().attr;
  JsonFields to(out);
  to.text("event", name_of_event(sample.event_index));
  to.text("comm", sample.comm);
  describe_numbers(to, sample);
  to.number("period", sample.period);
  for (const NumberRow& row : kNumbers) {
    if (attr.samples(row.bit)) row.describe(to, *sample.fields);
  }
  if (sample.stack != nullptr || attr.samples(abi::kSampleIp)) to.json("stack", stack_json(sample));
  describe_content(to, sample);
  to.finish();
  out.character('\n');
}

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;  // ns
constexpr std::string_view kUnknown = "[unknown]";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string without_blanks(std::string_view name) {
  std::string safe = printable(name);
  std::ranges::replace(safe, ' ', '_');
  return safe;
}

// A number that every reader parses; the kernel stores ~0 for values that were not recorded.
std::uint32_t shown(std::uint32_t number) { return number == ~0U ? 0 : number; }

void write_frame_line(TextBuffer& out, const symbolize::Frame& frame) {
  out.character('\t');
  out.hex(frame.ip.value, 16);
  out.character(' ');
  out.text(frame.function.empty() ? std::string(kUnknown) : importer_symbol(frame.function));
  if (!frame.function.empty() && !frame.is_inlined) {
    out.text("+0x");
    out.hex(frame.shown_address - frame.function_start);
  }
  out.text(" (");
  out.text(frame.module == nullptr ? std::string(kUnknown) : importer_module(frame.module->path));
  out.text(")\n");
}

}  // namespace

// Some readers take the first number after a blank for the process, and a line that begins with # for a
// comment. A name of one letter is no name to parsers with \S.+, which take a second blank as its second
// letter.
std::string importer_comm(std::string_view comm) {
  if (comm.empty()) return std::string(kUnknown);
  std::string safe = without_blanks(comm);
  if (safe[0] == '#') safe[0] = '_';
  if (safe.size() == 1) safe += ' ';
  return safe;
}

// Some readers take trailing digits with a colon for the time.
std::string importer_event(std::string_view name) {
  if (name.empty()) return std::string(kUnknown);
  std::string safe = without_blanks(name);
  if (is_digit(safe[0]) || safe[0] == '.') safe.insert(0, 1, '_');
  return safe;
}

// A name that begins with ( is taken for a process's name and skipped; "::(anonymous namespace)::run" means
// the same.
std::string importer_symbol(std::string_view function) {
  std::string safe = printable(function);
  if (safe.starts_with('(')) safe.insert(0, "::");
  return safe;
}

// Some readers end the module at its first blank or ).
std::string importer_module(std::string_view path) {
  std::string safe = without_blanks(path);
  std::ranges::replace(safe, '(', '[');
  std::ranges::replace(safe, ')', ']');
  return safe;
}

const std::string& ImporterText::comm_of(std::string_view comm) {
  const auto [row, is_new] = comms_.try_emplace(comm.data());
  if (is_new) row->second = importer_comm(comm);
  return row->second;
}

const std::string& ImporterText::name_of_event(std::size_t index) {
  while (event_names_.size() <= index) {
    event_names_.push_back(importer_event(session_->events()[event_names_.size()].name));
  }
  return event_names_[index];
}

void ImporterText::write_location(TextBuffer& out, const Location& location) {
  std::string_view text = lines_.find_text(location.id);
  if (text.data() == nullptr) {
    TextBuffer lines;
    for (const symbolize::Frame& frame : resolver_->frames(location)) write_frame_line(lines, frame);
    text = lines_.keep(location.id, lines.view());
  }
  out.text(text);
}

void ImporterText::write(TextBuffer& out, const ResolvedSample& sample) {
  const std::uint64_t time = sample.fields->time == ~std::uint64_t{0} ? 0 : sample.fields->time;
  out.text(comm_of(sample.comm));
  out.character(' ');
  out.decimal(shown(sample.pid()));
  out.character('/');
  out.decimal(shown(sample.tid()));
  out.text(" [");
  out.zero_filled(shown(sample.fields->cpu), 3);
  out.text("] ");
  out.decimal(time / kSecond);
  out.character('.');
  out.zero_filled(time % kSecond / 1000, 6);
  out.text(": ");
  out.decimal(std::max<std::uint64_t>(sample.period, 1));  // some readers multiply by it
  out.character(' ');
  out.text(name_of_event(sample.event_index));
  out.text(": \n");
  if (sample.stack == nullptr) {
    write_location(out, *sample.location);
  } else {
    for (const LocationId number : sample.stack->frames) write_location(out, resolver_->location(number));
  }
  out.character('\n');
}

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
  if (sample.event_index >= event_names_.size()) return {};  // an event that came in a pipe after find()
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
