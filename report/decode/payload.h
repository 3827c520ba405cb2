// Decodes the payload of an event (of a BPF program or a tracepoint) into named values. Both kinds have the
// same description (PayloadSchema), so that views need not distinguish them.
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
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

// The longest tracepoint record that is decoded, in bytes; the kernel's own limit is a page.
inline constexpr int kLargestRecord = 64 * 1024;

// One value of a field. Text points into the payload.
using FieldValue = std::variant<std::uint64_t, std::int64_t, double, std::string_view>;

// The field with this name, or the first one with this role; null: there is none.
const PayloadField* field_named(const PayloadSchema& schema, std::string_view name);
const PayloadField* field_with_role(const PayloadSchema& schema, std::string_view role);

// Element `index` of `field`; nullopt when the payload is too short.
std::optional<FieldValue> read_field(const PayloadField& field, Bytes payload, std::endian order,
                                     std::uint32_t index = 0);
// Whether a field holds only offset and length of its content (__data_loc, __rel_loc of tracepoints).
bool is_located(const PayloadField& field);
// The bytes of a Text, up to its first NUL; nullopt when the payload is too short.
std::optional<Bytes> room_of_text(const PayloadField& field, Bytes payload, std::endian order);
// Whether a field is an array, and how many of its elements the payload has. A text is one value.
bool is_list(const PayloadField& field);
std::uint32_t elements_of(const PayloadField& field, Bytes payload);
// The number of elements to show: a stack ends at its first 0.
std::uint32_t shown_elements(const PayloadField& field, Bytes payload, std::endian order);
// Holds signed and unsigned 64-bit numbers, and sums and products of two.
__extension__ using Int128 = __int128;
// The lowest and the highest number of 64 bits.
inline constexpr Int128 kLowest = std::numeric_limits<std::int64_t>::min();
inline constexpr Int128 kHighest = std::numeric_limits<std::uint64_t>::max();
std::string decimal_text(Int128 number);
// A value as an integer, for histograms and weights: from kLowest to kHighest, fractions are cut off. nullopt
// for a text.
std::optional<Int128> number_of(const FieldValue& value);
std::optional<Int128> read_number(const PayloadField& field, Bytes payload, std::endian order);
// The enumerator for the value; empty when there is none.
std::string_view name_of(const PayloadField& field, const FieldValue& value);
// Whether the field's format or role makes it an address or a mask.
bool is_shown_in_hex(const PayloadField& field);
// Whether the field is an address that a symbol can name: FORMAT("kaddr"), FORMAT("uaddr"), ROLE("stack").
bool is_named_address(const PayloadField& field);
bool has_named_addresses(const PayloadSchema& schema);
// The bits of an integer; 0 for other values.
std::uint64_t bits_of(const FieldValue& value);
// One element as text: "2097152", "LQ_WRITE", "\"dd\"", "0x1f".
std::string show_value(const PayloadField& field, const FieldValue& value, Names names);
// Returns the symbol at an address, "vfs_read+0x10"; empty when unknown.
using AddressName = std::function<std::string(std::uint64_t address)>;
// All fields: `bytes=2097152 op=LQ_WRITE comm="dd" addr=[10,0] caller=0xffffffff81000010(vfs_read+0x10)`.
// Fields beyond the end of the payload are left out. Without `name_of_address`, addresses get no names.
std::string show_payload(const PayloadSchema& schema, Bytes payload, std::endian order, Names names,
                         const AddressName& name_of_address = {});

// PayloadField::format of a tracepoint's field of C type long: as a sort key, perf prints such a field
// differently.
inline constexpr std::string_view kLong = "long";
// The fields in a tracepoint's format file, without the common_* ones. A `const char *` that the print format
// shows with %s gets its texts from `strings` (printk_formats of tracefs).
PayloadSchema tracepoint_schema(std::string_view event_name, std::string_view format_text,
                                const format::ConstantStrings& strings = {});

// The schemas of a capture's events, each looked up once.
class EventSchemas {
 public:
  EventSchemas(const format::EventSet& events, const format::Features& features)
      : events_(&events), features_(&features) {}
  // Null when the capture has no description of that event's payload.
  const PayloadSchema* schema_of(std::size_t event_index);

 private:
  std::optional<PayloadSchema> find_schema(const format::Event& event) const;
  void learn();
  const format::EventSet* events_;
  const format::Features* features_;
  format::ConstantStrings strings_;
  // The first description of each event, and how many descriptions are read.
  std::map<std::uint64_t, const format::TracepointFormat*> formats_;  // by tracepoint id
  std::map<std::string, const PayloadSchema*> declared_;              // by the name of a BPF event
  std::size_t known_formats_ = 0, known_schemas_ = 0;
  // By event: not looked up yet, none, or the schema.
  std::deque<std::optional<std::optional<PayloadSchema>>> known_;
};

// Writes the fields of a payload into a sink: numbers as numbers, addresses and masks in hexadecimal, enums
// by name, arrays as lists. Fields beyond the end of the payload are left out. Names and texts are unchecked
// bytes of the capture; the sink makes them safe.
void describe_payload(FieldSink& to, const PayloadSchema& schema, Bytes payload, std::endian order);

}  // namespace tacho::report
