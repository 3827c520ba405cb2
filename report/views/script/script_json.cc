#include "report/views/script/script_json.h"

#include <cstdint>

#include "format/records/perf_abi.h"
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

}  // namespace tacho::report
