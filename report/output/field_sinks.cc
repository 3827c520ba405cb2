#include "report/output/field_sinks.h"

#include <fmt/format.h>

#include <cmath>
#include <new>

namespace tacho::report {

void TextFields::key(std::string_view name) {
  if (!first_) out_.character(' ');
  first_ = false;
  if (name.empty()) return;
  out_.text(printable(name));
  out_.character('=');
}

void TextFields::number(std::string_view name, std::uint64_t value) {
  key(name);
  out_.decimal(value);
}

void TextFields::signed_number(std::string_view name, std::int64_t value) {
  key(name);
  out_.signed_decimal(value);
}

void TextFields::real(std::string_view name, double value) {
  key(name);
  out_.text(fmt::format("{}", value));
}

void TextFields::hex(std::string_view name, std::uint64_t value) {
  key(name);
  out_.text("0x");
  out_.hex(value);
}

void TextFields::text(std::string_view name, std::string_view value) {
  key(name);
  out_.character('"');
  out_.text(printable_quoted(value));
  out_.character('"');
}

void TextFields::bytes(std::string_view name, format::Bytes value) {
  key(name);
  for (const std::byte byte : value) out_.hex_byte(static_cast<std::uint8_t>(byte));
}

void TextFields::begin_bracket(std::string_view name, char bracket) {
  key(name);
  out_.character(bracket);
  first_ = true;
}

void TextFields::end_bracket(char bracket) {
  out_.character(bracket);
  first_ = false;
}

void* JsonFields::Memory::Realloc(void* old, std::size_t /*old_size*/, std::size_t size) {
  if (size == 0) {
    std::free(old);
    return nullptr;
  }
  void* const memory = std::realloc(old, size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void JsonFields::string(std::string_view value) {
  writer_.String(value.data(), static_cast<rapidjson::SizeType>(value.size()));
}

void JsonFields::key(std::string_view name) {
  if (name.empty()) return;
  // Most names are constants of this program; those of a payload's fields come from the capture.
  const bool is_safe = is_plain(name) && name.find('\\') == std::string_view::npos;
  const std::string made = is_safe ? std::string() : printable_json(name);
  const std::string_view safe = is_safe ? name : std::string_view(made);
  writer_.Key(safe.data(), static_cast<rapidjson::SizeType>(safe.size()));
}

void JsonFields::number(std::string_view name, std::uint64_t value) {
  key(name);
  writer_.Uint64(value);
}

void JsonFields::signed_number(std::string_view name, std::int64_t value) {
  key(name);
  writer_.Int64(value);
}

void JsonFields::real(std::string_view name, double value) {
  key(name);
  if (std::isfinite(value)) {
    writer_.Double(value);
  } else {
    writer_.Null();
  }
}

void JsonFields::json(std::string_view name, std::string_view value) {
  key(name);
  writer_.RawValue(value.data(), value.size(), rapidjson::kObjectType);
}

void JsonFields::hex(std::string_view name, std::uint64_t value) {
  key(name);
  string(fmt::format("{:#x}", value));
}

void JsonFields::printed(std::string_view name, std::string_view value) {
  key(name);
  string(value);
}

void JsonFields::text(std::string_view name, std::string_view value) {
  key(name);
  string(printable_json(value));
}

void JsonFields::bytes(std::string_view name, format::Bytes value) {
  key(name);
  TextBuffer digits;
  for (const std::byte byte : value) digits.hex_byte(static_cast<std::uint8_t>(byte));
  string(digits.view());
}

void JsonFields::flag(std::string_view name, bool value) {
  key(name);
  writer_.Bool(value);
}

void JsonFields::begin_list(std::string_view name) {
  key(name);
  writer_.StartArray();
}

void JsonFields::begin_object(std::string_view name) {
  key(name);
  writer_.StartObject();
}

}  // namespace tacho::report
