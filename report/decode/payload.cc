#include "report/decode/payload.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace tacho::report {

namespace {

using format::Cursor;
using format::FieldKind;

// A tracepoint's text of varying length: the field holds its offset in the record (low 16 bits) and its
// length in bytes (high 16 bits); relative ones count from the end of the field.
constexpr std::string_view kDataLocation = "data_loc";
constexpr std::string_view kRelativeLocation = "rel_loc";

// `size` bits from bit `offset` on, as an unsigned number. Little-endian machines count bits from the lowest
// of each byte, big-endian ones from the highest.
std::optional<std::uint64_t> read_bits(Bytes payload, std::uint64_t offset, std::uint32_t size,
                                       std::endian order) {
  if (size == 0 || size > 64 || payload.size() * 8 < size || offset > payload.size() * 8 - size)
    return std::nullopt;
  const auto bit = [&](std::uint64_t at) {
    const auto byte = std::to_integer<std::uint64_t>(payload[at / 8]);
    return order == std::endian::little ? byte >> (at % 8) & 1 : byte >> (7 - at % 8) & 1;
  };
  if (offset % 8 == 0 && (size == 8 || size == 16 || size == 32 || size == 64)) {
    Cursor in(payload.subspan(offset / 8), order);
    return size == 8 ? in.u8() : size == 16 ? in.u16() : size == 32 ? in.u32() : in.u64();
  }
  std::uint64_t value = 0;
  for (std::uint32_t i = 0; i < size; ++i) {
    if (order == std::endian::little) {
      value |= bit(offset + i) << i;
    } else {
      value = value << 1 | bit(offset + i);
    }
  }
  return value;
}

std::int64_t sign_extended(std::uint64_t value, std::uint32_t bits) {
  if (bits < 64 && (value >> (bits - 1) & 1) != 0) value |= ~std::uint64_t{0} << bits;
  return static_cast<std::int64_t>(value);
}

}  // namespace

const PayloadField* field_named(const PayloadSchema& schema, std::string_view name) {
  const auto field = std::ranges::find(schema.fields, name, &PayloadField::name);
  return field == schema.fields.end() ? nullptr : &*field;
}

const PayloadField* field_with_role(const PayloadSchema& schema, std::string_view role) {
  const auto field = std::ranges::find(schema.fields, role, &PayloadField::role);
  return field == schema.fields.end() ? nullptr : &*field;
}

bool is_located(const PayloadField& field) {
  return field.format == kDataLocation || field.format == kRelativeLocation;
}

std::optional<Bytes> room_of_text(const PayloadField& field, Bytes payload, std::endian order) {
  const std::uint64_t start = field.bit_offset / 8;
  if (start > payload.size()) return std::nullopt;
  const Bytes rest = payload.subspan(start);
  if (!is_located(field)) {
    const std::uint64_t length = field.count == 0 ? rest.size() : field.count;
    if (rest.empty()) return std::nullopt;
    return rest.first(std::min<std::uint64_t>(length, rest.size()));
  }
  Cursor in(rest, order);
  const std::uint32_t location = in.u32();
  const std::uint64_t base = field.format == kRelativeLocation ? start + 4 : 0;
  Cursor record(payload);
  record.skip(base + (location & 0xffff));
  const Bytes room = record.take_bytes(location >> 16);
  if (in.failed() || record.failed()) return std::nullopt;
  return room;
}

bool is_list(const PayloadField& field) {
  return field.kind != FieldKind::Text && (field.is_array || field.count != 1);
}

std::uint32_t elements_of(const PayloadField& field, Bytes payload) {
  if (field.count != 0 || field.bit_size == 0) return field.count;
  const std::uint64_t bits = payload.size() * 8;
  if (bits <= field.bit_offset) return 0;
  return static_cast<std::uint32_t>((bits - field.bit_offset) / field.bit_size);
}

bool is_named_address(const PayloadField& field) {
  const bool is_number = field.kind == FieldKind::Unsigned || field.kind == FieldKind::Signed;
  return is_number && (field.format == "kaddr" || field.format == "uaddr" || field.role == "stack");
}

bool has_named_addresses(const PayloadSchema& schema) {
  return std::ranges::any_of(schema.fields, is_named_address);
}

bool is_shown_in_hex(const PayloadField& field) { return field.format == "hex" || is_named_address(field); }

std::string_view name_of(const PayloadField& field, const FieldValue& value) {
  if (field.kind != FieldKind::Enum) return {};
  const auto number = static_cast<std::int64_t>(bits_of(value));
  const auto row =
      std::ranges::find(field.enumerators, number, [](const auto& enumerator) { return enumerator.first; });
  return row == field.enumerators.end() ? std::string_view() : std::string_view(row->second);
}

std::optional<FieldValue> read_field(const PayloadField& field, Bytes payload, std::endian order,
                                     std::uint32_t index) {
  if (field.kind == FieldKind::Text) {
    const auto room = room_of_text(field, payload, order);
    return room ? std::optional<FieldValue>(format::text_of(*room)) : std::nullopt;
  }
  const auto bits =
      read_bits(payload, field.bit_offset + std::uint64_t{index} * field.bit_size, field.bit_size, order);
  if (!bits) return std::nullopt;
  if (field.kind == FieldKind::Float) {
    if (field.bit_size == 32) return std::bit_cast<float>(static_cast<std::uint32_t>(*bits));
    if (field.bit_size == 64) return std::bit_cast<double>(*bits);
    return std::nullopt;
  }
  if (field.kind == FieldKind::Signed || (field.kind == FieldKind::Enum && field.is_signed)) {
    return sign_extended(*bits, field.bit_size);
  }
  return *bits;
}

std::uint32_t shown_elements(const PayloadField& field, Bytes payload, std::endian order) {
  const std::uint32_t count = elements_of(field, payload);
  if (field.role != "stack") return count;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto value = read_field(field, payload, order, i);
    if (!value || bits_of(*value) == 0) return i;
  }
  return count;
}

std::string decimal_text(Int128 number) { return fmt::format("{}", number); }

std::optional<Int128> number_of(const FieldValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return *number;
  const auto* const number = std::get_if<double>(&value);
  if (number == nullptr) return std::nullopt;
  if (!(*number > static_cast<double>(kLowest))) return kLowest;
  return *number < static_cast<double>(kHighest) ? static_cast<Int128>(*number) : kHighest;
}

std::optional<Int128> read_number(const PayloadField& field, Bytes payload, std::endian order) {
  const auto value = read_field(field, payload, order);
  return value ? number_of(*value) : std::nullopt;
}

std::uint64_t bits_of(const FieldValue& value) {
  if (const auto* number = std::get_if<std::uint64_t>(&value)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&value)) return static_cast<std::uint64_t>(*number);
  return 0;
}

std::string show_value(const PayloadField& field, const FieldValue& value, Names names) {
  if (const auto* text = std::get_if<std::string_view>(&value))
    return fmt::format("\"{}\"", printable(*text, names));
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto name = name_of(field, value); !name.empty()) return printable(name, names);
  const std::uint64_t bits = bits_of(value);
  if (is_shown_in_hex(field)) return fmt::format("{:#x}", bits);
  if (field.format == "oct") return fmt::format("0{:o}", bits);
  const auto* const number = std::get_if<std::int64_t>(&value);
  return number != nullptr ? std::to_string(*number) : std::to_string(bits);
}

std::string show_payload(const PayloadSchema& schema, Bytes payload, std::endian order, Names names,
                         const AddressName& name_of_address) {
  std::string shown;
  for (const PayloadField& field : schema.fields) {
    const bool is_array = is_list(field);
    const std::uint32_t count = is_array ? shown_elements(field, payload, order) : 1;
    std::string values;
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto value = read_field(field, payload, order, i);
      if (!value) break;
      if (i > 0) values += ',';
      values += show_value(field, *value, names);
      if (!name_of_address || !is_named_address(field)) continue;
      const std::string name = name_of_address(bits_of(*value));
      if (!name.empty()) values.append("(").append(printable(name, names)).append(")");
    }
    const bool may_be_empty = is_array && (field.count == 0 || field.role == "stack");
    if (values.empty() && !may_be_empty) continue;
    if (!shown.empty()) shown += ' ';
    shown += printable(field.name, names) + '=' + (is_array ? '[' + values + ']' : values);
  }
  return shown;
}

namespace {

// Fields of tracepoint format files: lines "field:TYPE NAME[COUNT];	offset:8;	size:4;	signed:1;".

// The text between `key` and the next ';', blanks trimmed.
std::optional<std::string_view> value_of_key(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view value = line.substr(at + key.size());
  return value.substr(0, value.find(';'));
}

std::optional<std::uint64_t> number_part(std::string_view line, std::string_view key) {
  const auto text = value_of_key(line, key);
  std::uint64_t number = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), number).ec != std::errc{}) {
    return std::nullopt;
  }
  return number;
}

std::optional<PayloadField> tracepoint_field(std::string_view line) {
  const auto declaration = value_of_key(line, "field:");
  const auto offset = number_part(line, "offset:"), size = number_part(line, "size:");
  if (!declaration || !offset || !size || *offset > kLargestRecord || *size > kLargestRecord)
    return std::nullopt;
  const auto bracket = declaration->find('[');
  std::string_view name = declaration->substr(0, bracket);
  const bool is_located = declaration->starts_with("__data_loc") || declaration->starts_with("__rel_loc");
  if (is_located) name = *declaration;  // "__data_loc char[] name": the brackets are before the name
  const auto name_start = name.find_last_of(" *]");
  const std::string_view type = declaration->substr(0, name_start == std::string_view::npos ? 0 : name_start);
  if (name_start != std::string_view::npos) name.remove_prefix(name_start + 1);
  if (name.empty() || name.starts_with("common_")) return std::nullopt;

  PayloadField field;
  field.name = name;
  field.bit_offset = static_cast<std::uint32_t>(*offset * 8);
  if (is_located || (bracket != std::string_view::npos && type.ends_with("char"))) {
    field.kind = FieldKind::Text;
    field.bit_size = 8;
    field.count = static_cast<std::uint32_t>(*size);
    field.is_array = true;
    if (is_located) field.format = declaration->starts_with("__rel") ? kRelativeLocation : kDataLocation;
    return field;
  }
  std::uint64_t count = 1;
  if (bracket != std::string_view::npos) {
    const std::string_view inside = declaration->substr(bracket + 1);
    if (std::from_chars(inside.data(), inside.data() + inside.size(), count).ec != std::errc{} || count == 0)
      count = 1;
    field.is_array = true;
  }
  const std::uint64_t element = *size / count;
  if (element != 1 && element != 2 && element != 4 && element != 8) return std::nullopt;
  field.kind = number_part(line, "signed:").value_or(0) != 0 ? FieldKind::Signed : FieldKind::Unsigned;
  field.bit_size = static_cast<std::uint32_t>(element * 8);
  field.count = static_cast<std::uint32_t>(count);
  if (declaration->find('*') != std::string_view::npos) field.format = "hex";
  if (field.format.empty() && type.find("long") != std::string_view::npos) field.format = kLong;
  return field;
}

// A kernel has hundreds of strings, and each field has a copy of all.
constexpr std::size_t kMostStrings = 4096;

void name_strings(PayloadSchema& schema, std::string_view format_text,
                  const format::ConstantStrings& strings) {
  const auto at = format_text.find("print fmt:");
  if (at == std::string_view::npos || strings.rows().empty() || strings.rows().size() > kMostStrings) return;
  const std::string_view print = format_text.substr(at);
  for (PayloadField& field : schema.fields) {
    const std::string_view fields = format_text.substr(0, at);
    const bool is_pointer = fields.find("char * " + field.name + ';') != std::string_view::npos ||
                            fields.find("char *" + field.name + ';') != std::string_view::npos;
    // Numbers are cast or part of an expression; a string is passed unchanged.
    const bool is_text = print.find(", REC->" + field.name + ',') != std::string_view::npos ||
                         print.find(", REC->" + field.name + '\n') != std::string_view::npos ||
                         print.ends_with(", REC->" + field.name);
    if (!is_pointer || !is_text || field.bit_size != 64) continue;
    field.kind = FieldKind::Enum;
    for (const auto& row : strings.rows())
      field.enumerators.emplace_back(static_cast<std::int64_t>(row.address), row.text);
  }
}

}  // namespace

PayloadSchema tracepoint_schema(std::string_view event_name, std::string_view format_text,
                                const format::ConstantStrings& strings) {
  PayloadSchema schema;
  schema.event = event_name;
  const std::string_view fields = format_text.substr(0, format_text.find("print fmt:"));
  for (std::size_t at = 0; at < fields.size();) {
    const auto end = std::min(fields.find('\n', at), fields.size());
    if (auto field = tracepoint_field(fields.substr(at, end - at)))
      schema.fields.push_back(std::move(*field));
    at = end + 1;
  }
  name_strings(schema, format_text, strings);
  return schema;
}

const PayloadSchema* EventSchemas::schema_of(std::size_t event_index) {
  learn();
  if (known_.size() <= event_index) known_.resize(event_index + 1);
  auto& known = known_[event_index];
  if (!known) known = find_schema((*events_)[event_index]);
  return *known ? &**known : nullptr;
}

// Reads descriptions that came after the last call: in a pipe they may follow samples. Each of the two
// sections comes once (format/container/feature_sections.h), so its size shows whether it is new.
void EventSchemas::learn() {
  const auto& formats = features_->tracing.formats;
  const auto& schemas = features_->schemas;
  if (known_formats_ == formats.size() && known_schemas_ == schemas.size()) return;
  if (known_formats_ != formats.size()) strings_ = format::ConstantStrings(features_->tracing.printk_formats);
  for (; known_formats_ < formats.size(); ++known_formats_)
    if (const auto id = format::tracepoint_id(formats[known_formats_].text))
      formats_.try_emplace(*id, &formats[known_formats_]);
  for (; known_schemas_ < schemas.size(); ++known_schemas_)
    declared_.try_emplace(schemas[known_schemas_].event, &schemas[known_schemas_]);
  for (auto& known : known_)
    if (known && !*known) known.reset();  // it may have a description now
}

std::optional<PayloadSchema> EventSchemas::find_schema(const format::Event& event) const {
  if (event.attr.type == format::abi::kTracepoint) {
    const auto row = formats_.find(event.attr.config);
    return row == formats_.end() ? std::nullopt
                                 : std::optional(tracepoint_schema(event.name, row->second->text, strings_));
  }
  const auto row = declared_.find(event.name);
  return row == declared_.end() ? std::nullopt : std::optional(*row->second);
}

namespace {

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
