#include "report/views/script/script_json.h"

#include <algorithm>

#include "report/decode/payload.h"
#include "report/output/field_sinks.h"
#include "report/output/text_output.h"
#include "report/samples/address_name.h"

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

// What a sample has when its event asked the kernel for it.
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

// The events of a pipe come with its records.
const std::string& ScriptJson::name_of_event(std::size_t index) {
  while (event_names_.size() <= index) event_names_.push_back(session_->events()[event_names_.size()].name);
  return event_names_[index];
}

void ScriptJson::describe_numbers(FieldSink& to, const ResolvedSample& sample) const {
  const format::EventAttr& attr = sample.event().attr;
  const format::Sample& raw = *sample.raw;
  if (attr.samples(abi::kSampleTid)) {
    to.number("pid", raw.pid);
    to.number("tid", raw.tid);
  }
  if (attr.samples(abi::kSampleCpu)) to.number("cpu", raw.cpu);
  if (attr.samples(abi::kSampleTime)) to.number("time", raw.time);
}

// The payload by its description; as bytes when the capture has none.
void ScriptJson::describe_content(FieldSink& to, const ResolvedSample& sample) {
  if (!sample.event().attr.samples(abi::kSampleRaw)) return;
  const PayloadSchema* const schema = schemas_.of(sample.event_index);
  if (schema == nullptr) return to.bytes("raw", sample.raw->raw);
  to.begin_object("fields");
  describe_payload(to, *schema, sample.raw->raw, sample.order);
  to.end_object();
  if (has_named_addresses(*schema)) describe_addresses(to, *schema, sample);
}

// What stands at the payload's addresses, by the fields' names: a frame each, or a list of frames.
void ScriptJson::describe_addresses(FieldSink& to, const PayloadSchema& schema,
                                    const ResolvedSample& sample) {
  to.begin_object("symbols");
  for (const PayloadField& field : schema.fields) {
    if (!is_named_address(field)) continue;
    if (is_list(field)) to.begin_list(field.name);
    const std::uint32_t count = is_list(field) ? shown_elements(field, sample.raw->raw, sample.order) : 1;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto value = read_field(field, sample.raw->raw, sample.order, i);
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

bool ScriptJson::names_other_places() {
  for (std::size_t i = 0; i < session_->events().size(); ++i) {
    const PayloadSchema* const schema = schemas_.of(i);
    if (schema != nullptr && has_named_addresses(*schema)) return true;
  }
  return false;
}

// The frames at one place, innermost first, joined by commas: mostly one.
std::string_view ScriptJson::place_json(const Location& location) {
  if (const auto known = places_.find(location.number); known.data() != nullptr) return known;
  TextBuffer made;
  for (const symbolize::Frame& frame : resolver_->frames(location)) {
    if (made.size() > 0) made.character(',');
    JsonFields to(made);
    describe_frame(to, frame);
    to.finish();
  }
  return places_.keep(location.number, made.view());
}

std::string_view ScriptJson::stack_json(const ResolvedSample& sample) {
  stack_.clear();
  stack_.character('[');
  const auto add = [&](const Location& location) {
    if (stack_.size() > 1) stack_.character(',');
    stack_.text(place_json(location));
  };
  if (sample.stack == nullptr) {
    add(*sample.location);
  } else {
    for (const std::uint32_t number : sample.stack->frames) add(resolver_->location(number));
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
    if (attr.samples(row.bit)) row.describe(to, *sample.raw);
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

// A number that every reader takes for one: what the event did not sample is ~0.
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

// The first number behind a blank is the process to some readers; a line that begins with # is a comment; a
// name of one letter is no name to parsers that match \S.+ and takes a second blank for its second letter.
std::string importer_comm(std::string_view comm) {
  if (comm.empty()) return std::string(kUnknown);
  std::string safe = without_blanks(comm);
  if (safe[0] == '#') safe[0] = '_';
  if (safe.size() == 1) safe += ' ';
  return safe;
}

// The last digits with a colon behind are the time to some readers.
std::string importer_event(std::string_view name) {
  if (name.empty()) return std::string(kUnknown);
  std::string safe = without_blanks(name);
  if (is_digit(safe[0]) || safe[0] == '.') safe.insert(0, 1, '_');
  return safe;
}

// What begins with ( is left out as a process's name: "::(anonymous namespace)::run" says the same.
std::string importer_symbol(std::string_view function) {
  std::string safe = printable(function);
  if (safe.starts_with('(')) safe.insert(0, "::");
  return safe;
}

// Ends at its first blank or ) to some readers.
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

void ImporterText::write_place(TextBuffer& out, const Location& location) {
  std::string_view text = places_.find(location.number);
  if (text.data() == nullptr) {
    TextBuffer lines;
    for (const symbolize::Frame& frame : resolver_->frames(location)) write_frame_line(lines, frame);
    text = places_.keep(location.number, lines.view());
  }
  out.text(text);
}

void ImporterText::write(TextBuffer& out, const ResolvedSample& sample) {
  const std::uint64_t time = sample.raw->time == ~std::uint64_t{0} ? 0 : sample.raw->time;
  out.text(comm_of(sample.comm));
  out.character(' ');
  out.decimal(shown(sample.pid()));
  out.character('/');
  out.decimal(shown(sample.tid()));
  out.text(" [");
  out.zero_filled(shown(sample.raw->cpu), 3);
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
    write_place(out, *sample.location);
  } else {
    for (const std::uint32_t number : sample.stack->frames) write_place(out, resolver_->location(number));
  }
  out.character('\n');
}

}  // namespace tacho::report
