#include "format/extensions/payload_schema.h"

namespace tacho::format {

namespace {

// docs/capture-format.md, "PAYLOAD_SCHEMAS".
constexpr std::uint32_t kSchemaVersion = 1;
constexpr std::uint32_t kMaxSchemas = 4096;
constexpr std::uint32_t kMaxFields = 4096;        // of one payload
constexpr std::uint32_t kMaxSize = 65535;         // bytes of one payload: a record's size is a u16
constexpr std::uint32_t kMaxEnumerators = 65536;  // of one field

void write_text(ByteWriter& out, std::string_view text) {
  out.u32(static_cast<std::uint32_t>(text.size())).bytes(std::as_bytes(std::span(text)));
}

std::string read_text(Cursor& in) { return std::string(as_text(in.take_bytes(in.u32()))); }

void write_field(ByteWriter& out, const PayloadField& field) {
  write_text(out, field.name);
  out.u8(static_cast<std::uint8_t>(field.kind)).u8(field.is_signed ? 1 : 0).u8(field.is_array ? 1 : 0).u8(0);
  out.u32(field.bit_offset).u32(field.bit_size).u32(field.count);
  write_text(out, field.unit);
  write_text(out, field.role);
  write_text(out, field.format);
  out.u32(static_cast<std::uint32_t>(field.enumerators.size()));
  for (const auto& [value, name] : field.enumerators) {
    out.u64(static_cast<std::uint64_t>(value));
    write_text(out, name);
  }
}

// Whether all elements of the field are inside the payload.
bool fits(const PayloadField& field, std::uint32_t payload_size) {
  const std::uint64_t end = field.bit_offset + std::uint64_t{field.bit_size} * field.count;
  return end <= std::uint64_t{payload_size} * 8;
}

Result<PayloadField> read_field(Cursor& in, std::uint32_t payload_size) {
  PayloadField field;
  field.name = read_text(in);
  const std::uint8_t kind = in.u8();
  field.is_signed = in.u8() != 0;
  field.is_array = in.u8() != 0;
  in.u8();
  field.bit_offset = in.u32();
  field.bit_size = in.u32();
  field.count = in.u32();
  field.unit = read_text(in);
  field.role = read_text(in);
  field.format = read_text(in);
  const std::uint32_t enumerators = in.u32();
  if (in.failed()) return Error{"cut short"};
  if (kind > static_cast<std::uint8_t>(FieldKind::Float))
    return Error{"field '" + field.name + "' is of an unknown kind " + std::to_string(kind)};
  field.kind = static_cast<FieldKind>(kind);
  if (field.bit_size == 0 || field.bit_size > 64 || !fits(field, payload_size))
    return Error{"field '" + field.name + "' is not inside its payload"};
  if (enumerators > kMaxEnumerators) return Error{"field '" + field.name + "' has too many enumerators"};
  for (std::uint32_t i = 0; i < enumerators && !in.failed(); ++i) {
    const auto value = static_cast<std::int64_t>(in.u64());
    field.enumerators.emplace_back(value, read_text(in));
  }
  return field;
}

Result<PayloadSchema> read_schema(Cursor& in) {
  PayloadSchema schema;
  schema.event = read_text(in);
  schema.type_name = read_text(in);
  schema.size = in.u32();
  const std::uint32_t fields = in.u32();
  if (in.failed()) return Error{"cut short"};
  if (fields > kMaxFields) return Error{"has " + std::to_string(fields) + " fields, too many"};
  if (schema.size > kMaxSize)
    return Error{schema.event + ": its payload of " + std::to_string(schema.size) +
                 " bytes is more than a record holds"};
  for (std::uint32_t i = 0; i < fields; ++i) {
    auto field = read_field(in, schema.size);
    if (!field) return std::move(field.error()).in(schema.event);
    schema.fields.push_back(std::move(*field));
  }
  return schema;
}

}  // namespace

void write_payload_schemas(ByteWriter& out, const std::vector<PayloadSchema>& schemas) {
  out.u32(kSchemaVersion).u32(static_cast<std::uint32_t>(schemas.size()));
  for (const PayloadSchema& schema : schemas) {
    write_text(out, schema.event);
    write_text(out, schema.type_name);
    out.u32(schema.size).u32(static_cast<std::uint32_t>(schema.fields.size()));
    for (const PayloadField& field : schema.fields) write_field(out, field);
  }
  out.align(8);
}

Result<std::vector<PayloadSchema>> parse_payload_schemas(Cursor in) {
  const std::uint32_t version = in.u32();
  const std::uint32_t count = in.u32();
  if (in.failed()) return Error{"cut short"};
  if (version != kSchemaVersion) return Error{"version " + std::to_string(version) + " is not known, 1 is"};
  if (count > kMaxSchemas) return Error{std::to_string(count) + " schemas are too many"};
  std::vector<PayloadSchema> schemas;
  for (std::uint32_t i = 0; i < count; ++i) {
    auto schema = read_schema(in);
    if (!schema) return std::move(schema.error());
    schemas.push_back(std::move(*schema));
  }
  if (in.failed()) return Error{"cut short"};
  return schemas;
}

}  // namespace tacho::format
