// The bytes of an event (a BPF payload or a tracepoint's record) as named values. Both kinds are described by
// the same schema, so no view asks which of them it has.
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "format/features.h"
#include "format/payload_schema.h"
#include "report/output/printable.h"

namespace tacho::report {

using format::Bytes;
using format::PayloadField;
using format::PayloadSchema;

// One value of a field. Text points into the payload.
using FieldValue = std::variant<std::uint64_t, std::int64_t, double, std::string_view>;

// Element `index` of `field`; nothing when the payload ends before it.
std::optional<FieldValue> read_field(const PayloadField& field, Bytes payload, std::endian order,
                                     std::uint32_t index = 0);
// How many elements of an array there are in the payload, and which fields are arrays at all. Texts are one
// value.
bool is_list(const PayloadField& field);
std::uint32_t elements_of(const PayloadField& field, Bytes payload);
// The same as a number, for histograms and weights: fractions are cut off, values above the signed range are
// held at its end, text gives nothing.
std::optional<std::int64_t> read_number(const PayloadField& field, Bytes payload, std::endian order);
// The name that an Enum's type has for the value; empty: none.
std::string_view name_of(const PayloadField& field, const FieldValue& value);
// An address or a mask, by the field's format.
bool is_shown_in_hex(const PayloadField& field);
// One element as text: "2097152", "LQ_WRITE", "\"dd\"", "0x1f".
std::string show_value(const PayloadField& field, const FieldValue& value, Names names);
// All fields: `bytes=2097152 op=LQ_WRITE comm="dd" addr=[10,0]`. Fields beyond the end of the payload are
// left out.
std::string show_payload(const PayloadSchema& schema, Bytes payload, std::endian order, Names names);

// What a tracepoint's format file says about its fields, those common to all tracepoints left out.
PayloadSchema tracepoint_schema(std::string_view event_name, std::string_view format_text);
// The number after "ID:" in a format file.
std::optional<std::uint64_t> tracepoint_id(std::string_view format_text);

// Schemas of a capture's events, each looked for once.
class EventSchemas {
 public:
  EventSchemas(const format::EventSet& events, const format::Features& features)
      : events_(&events), features_(&features) {}
  // Null when the capture describes no payload of that event.
  const PayloadSchema* of(std::size_t event_index);

 private:
  std::optional<PayloadSchema> find(const format::Event& event) const;
  const format::EventSet* events_;
  const format::Features* features_;
  std::deque<std::optional<std::optional<PayloadSchema>>>
      known_;  // by event: not yet looked for, none, or it
};

}  // namespace tacho::report
