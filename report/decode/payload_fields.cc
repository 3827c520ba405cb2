#include "report/decode/payload_fields.h"

namespace tacho::report {
namespace {

using format::FieldKind;

void describe_value(FieldSink& to, std::string_view name, const PayloadField& field,
                    const FieldValue& value) {
  if (const auto* text = std::get_if<std::string_view>(&value)) return to.text(name, *text);
  if (const auto* number = std::get_if<double>(&value)) return to.real(name, *number);
  if (const auto named = name_of(field, value); !named.empty()) return to.text(name, named);
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    if (is_shown_in_hex(field)) return to.hex(name, static_cast<std::uint64_t>(*number));
    return to.signed_number(name, *number);
  }
  const auto bits = std::get<std::uint64_t>(value);
  if (field.kind == FieldKind::Bool) return to.flag(name, bits != 0);
  return is_shown_in_hex(field) ? to.hex(name, bits) : to.number(name, bits);
}

}  // namespace

void describe_payload(FieldSink& to, const PayloadSchema& schema, Bytes payload, std::endian order) {
  for (const PayloadField& field : schema.fields) {
    const auto value = read_field(field, payload, order);
    if (!is_list(field)) {
      if (value) describe_value(to, field.name, field, *value);
      continue;
    }
    if (!value && field.count != 0) continue;
    to.begin_list(field.name);
    const std::uint32_t count = shown_elements(field, payload, order);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto element = read_field(field, payload, order, i);
      if (!element) break;
      describe_value(to, {}, field, *element);
    }
    to.end_list();
  }
}

}  // namespace tacho::report
