// The bytes of an event (a BPF payload or a tracepoint's record) as named values. Both kinds are described by
// the same schema, so no view asks which of them it has.
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "format/container/features.h"
#include "format/extensions/payload_schema.h"
#include "format/extensions/tracing_data.h"
#include "report/output/field_sinks.h"
#include "report/output/text_output.h"

namespace tacho::report {

using format::Bytes;
using format::PayloadField;
using format::PayloadSchema;

// The longest record of a tracepoint that is taken apart, in bytes; the kernel's own limit is a page.
inline constexpr int kLargestRecord = 64 * 1024;

// One value of a field. Text points into the payload.
using FieldValue = std::variant<std::uint64_t, std::int64_t, double, std::string_view>;

// Element `index` of `field`; nothing when the payload ends before it.
std::optional<FieldValue> read_field(const PayloadField& field, Bytes payload, std::endian order,
                                     std::uint32_t index = 0);
// Whether a field is only the place of its content, which stands behind the fields: __data_loc and __rel_loc
// of tracepoints.
bool is_located(const PayloadField& field);
// The bytes in which a Text stands, up to its first NUL; nothing when the payload ends before.
std::optional<Bytes> room_of_text(const PayloadField& field, Bytes payload, std::endian order);
// How many elements of an array there are in the payload, and which fields are arrays at all. Texts are one
// value.
bool is_list(const PayloadField& field);
std::uint32_t elements_of(const PayloadField& field, Bytes payload);
// As many of them as are shown: a stack ends at its first 0.
std::uint32_t shown_elements(const PayloadField& field, Bytes payload, std::endian order);
// The same as a number, for histograms and weights: fractions are cut off, values above the signed range are
// held at its end, text gives nothing.
std::optional<std::int64_t> read_number(const PayloadField& field, Bytes payload, std::endian order);
// The name that an Enum's type has for the value; empty: none.
std::string_view name_of(const PayloadField& field, const FieldValue& value);
// An address or a mask, by the field's format or role.
bool is_shown_in_hex(const PayloadField& field);
// An address of code or data that may have a name: FORMAT("kaddr"), FORMAT("uaddr") or ROLE("stack").
bool is_named_address(const PayloadField& field);
bool has_named_addresses(const PayloadSchema& schema);
// A whole number as its bits; 0 for what is none.
std::uint64_t bits_of(const FieldValue& value);
// One element as text: "2097152", "LQ_WRITE", "\"dd\"", "0x1f".
std::string show_value(const PayloadField& field, const FieldValue& value, Names names);
// The symbol at an address: "vfs_read+0x10"; empty: unknown.
using AddressName = std::function<std::string(std::uint64_t address)>;
// All fields: `bytes=2097152 op=LQ_WRITE comm="dd" addr=[10,0] caller=0xffffffff81000010(vfs_read+0x10)`.
// Fields beyond the end of the payload are left out. Without `name_of_address`, addresses are numbers alone.
std::string show_payload(const PayloadSchema& schema, Bytes payload, std::endian order, Names names,
                         const AddressName& name_of_address = {});

// PayloadField::format of a tracepoint's field whose C type is long, which matters to perf where the field
// stands alone; elsewhere it is shown by its kind.
inline constexpr std::string_view kLong = "long";
// What a tracepoint's format file says about its fields, those common to all tracepoints left out.
// The values of a `const char *` that the print format shows with %s are named by the strings there.
PayloadSchema tracepoint_schema(std::string_view event_name, std::string_view format_text,
                                const format::ConstantStrings& strings = {});

// Schemas of a capture's events, each looked for once.
class EventSchemas {
 public:
  EventSchemas(const format::EventSet& events, const format::Features& features)
      : events_(&events), features_(&features) {}
  // Null when the capture describes no payload of that event.
  const PayloadSchema* of(std::size_t event_index);

 private:
  std::optional<PayloadSchema> find(const format::Event& event) const;
  void learn();
  const format::EventSet* events_;
  const format::Features* features_;
  format::ConstantStrings strings_;
  // The first description of each, and how many descriptions there were.
  std::map<std::uint64_t, const format::TracepointFormat*> formats_;  // by tracepoint id
  std::map<std::string, const PayloadSchema*> declared_;              // by the name of a BPF event
  std::size_t known_formats_ = 0, known_schemas_ = 0;
  std::deque<std::optional<std::optional<PayloadSchema>>>
      known_;  // by event: not yet looked for, none, or it
};

// The fields of an event (a BPF payload or a tracepoint's record), each with its type, into a sink.

// Numbers as numbers, addresses and masks in hexadecimal, an enum's values by name where the type has one,
// arrays as lists. Fields beyond the end of the payload are left out. Names and texts are the capture's own:
// the sink makes them safe.
void describe_payload(FieldSink& to, const PayloadSchema& schema, Bytes payload, std::endian order);

}  // namespace tacho::report
