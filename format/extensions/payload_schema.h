// Payload schemas: the layout of BPF events. The recorder reads it from BTF and stores it in the capture, so
// that tacho-report needs neither BTF nor libbpf.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "format/base/byte_writer.h"
#include "format/base/cursor.h"
#include "format/base/result.h"

namespace tacho::format {

enum class FieldKind : std::uint8_t {
  Unsigned = 0,
  Signed = 1,
  Enum = 2,  // an integer whose values have names
  Text = 3,  // a char array, up to its first NUL
  Bool = 4,
  Float = 5,  // 4 or 8 bytes
};

struct PayloadField {
  std::string name;  // members of nested structs are joined by dots: "key.pid"
  FieldKind kind = FieldKind::Unsigned;
  bool is_signed = false;        // of an Enum's integer
  std::uint32_t bit_offset = 0;  // from the start of the payload
  std::uint32_t bit_size = 0;    // of one element; 1 to 64; 8 for Text
  std::uint32_t count = 1;       // elements of an array; 0: up to the payload's end (last member)
  bool is_array = false;         // printed as [x], even with one element
  std::string unit;              // "ns", "us", "ms", "bytes", "sectors", "pages", ... or empty
  std::string role;              // "value", "key", "weight", "stack" or empty
  std::string format;            // "hex", "kaddr", "uaddr", "oct", ... or empty: by kind
  std::vector<std::pair<std::int64_t, std::string>> enumerators;
  bool operator==(const PayloadField&) const = default;
};

struct PayloadSchema {
  std::string event;       // the event's name in this capture
  std::string type_name;   // the C struct's name
  std::uint32_t size = 0;  // bytes of the struct; a record's RAW may be followed by padding
  std::vector<PayloadField> fields;
  bool operator==(const PayloadSchema&) const = default;
};

// The body of header feature kPayloadSchemas (docs/capture-format.md).
void write_payload_schemas(ByteWriter& out, const std::vector<PayloadSchema>& schemas);
Result<std::vector<PayloadSchema>> parse_payload_schemas(Cursor in);

}  // namespace tacho::format
