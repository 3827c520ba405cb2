#include "bpf/object/constant_value.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <utility>
#include <vector>

namespace tacho::bpf {
namespace {

using format::FieldKind;
using format::PayloadField;
using Part = ConstantFault::Part;

constexpr std::size_t kMostListed = 40;

ConstantFault in_name(std::string what) { return {Part::Name, 0, std::move(what), {}}; }
ConstantFault in_value(std::size_t at, std::string what) { return {Part::Value, at, std::move(what), {}}; }

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

bool is_signed(const PayloadField& field) {
  return field.kind == FieldKind::Signed || (field.kind == FieldKind::Enum && field.is_signed);
}

// The range of a field's type: "-128 to 127".
std::uint64_t largest(const PayloadField& field) {
  const std::uint64_t all = ~std::uint64_t{0} >> (64 - field.bit_size);
  return is_signed(field) ? all >> 1 : all;
}
std::uint64_t most_negative(const PayloadField& field) { return is_signed(field) ? largest(field) + 1 : 0; }
std::string range_in_words(const PayloadField& field) {
  const std::uint64_t least = most_negative(field);
  std::string words = least == 0 ? "" : "-";
  return words.append(std::to_string(least)).append(" to ").append(std::to_string(largest(field)));
}

// A number as magnitude and sign; nothing if the text is not a number.
struct Number {
  bool is_negative = false;
  std::uint64_t size = 0;
  bool is_too_large = false;  // for 64 bits
};
std::optional<Number> number_in(std::string_view text) {
  Number number;
  number.is_negative = text.starts_with('-');
  if (number.is_negative) text.remove_prefix(1);
  const int base = text.starts_with("0x") || text.starts_with("0X") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number.size, base);
  if (text.empty() || end != text.data() + text.size() || code == std::errc::invalid_argument)
    return std::nullopt;
  number.is_too_large = code == std::errc::result_out_of_range;
  return number;
}

using Bits = Result<std::uint64_t>;

Bits bits_of_number(const PayloadField& field, std::string_view text) {
  const auto number = number_in(text);
  if (!number) return Error{quoted(text) + " is not a number; it is " + type_in_words(field)};
  const std::uint64_t most = number->is_negative ? most_negative(field) : largest(field);
  if (number->is_too_large || number->size > most)
    return Error{std::string(text) + " is out of range: " + type_in_words(field) + " takes " +
                 range_in_words(field)};
  return number->is_negative ? 0 - number->size : number->size;
}

Bits bits_of_bool(std::string_view text) {
  if (text == "true" || text == "1") return std::uint64_t{1};
  if (text == "false" || text == "0") return std::uint64_t{0};
  return Error{quoted(text) + " is neither true nor false (1 nor 0)"};
}

Bits bits_of_enum(const PayloadField& field, std::string_view text) {
  const auto named = std::ranges::find(field.enumerators, text, [](const auto& each) { return each.second; });
  if (named != field.enumerators.end()) return static_cast<std::uint64_t>(named->first);
  if (number_in(text)) return bits_of_number(field, text);
  std::string known;
  for (std::size_t i = 0; i < std::min(field.enumerators.size(), kMostListed); ++i)
    known += (i == 0 ? "" : " ") + field.enumerators[i].second;
  if (field.enumerators.size() > kMostListed) known += " ...";
  return Error{"there is no " + quoted(text) + " in its enum, which has " + known};
}

Bits bits_of(const PayloadField& field, std::string_view text) {
  if (field.kind == FieldKind::Bool) return bits_of_bool(text);
  if (field.kind == FieldKind::Enum) return bits_of_enum(field, text);
  return bits_of_number(field, text);
}

// A bitfield may start at any bit. Little-endian machines count from the lowest bit.
void write_bits(std::span<std::byte> bytes, std::uint64_t bit_offset, std::uint32_t size,
                std::uint64_t value) {
  for (std::uint32_t bit = 0; bit < size; ++bit) {
    const bool is_little = std::endian::native == std::endian::little;
    const std::uint64_t at = bit_offset + bit;
    const auto mask = static_cast<std::byte>(1U << (is_little ? at % 8 : 7 - at % 8));
    const bool is_set = ((value >> (is_little ? bit : size - 1 - bit)) & 1) != 0;
    bytes[at / 8] = is_set ? bytes[at / 8] | mask : bytes[at / 8] & ~mask;
  }
}

std::optional<ConstantFault> put_text(const PayloadField& field, std::string_view text,
                                      std::span<std::byte> bytes) {
  const std::uint32_t most = std::max(field.count, 1U) - 1;  // programs expect a NUL at the end
  if (text.size() + 1 > field.count)
    return in_value(
        most, "it is too long: " + type_in_words(field) + " takes " + std::to_string(most) + " letters");
  const auto target = bytes.subspan(field.bit_offset / 8, field.count);
  std::ranges::fill(target, std::byte{0});
  std::ranges::transform(text, target.begin(), [](char c) { return static_cast<std::byte>(c); });
  return std::nullopt;
}

// "80:443": sets the first elements; the others keep their values.
std::optional<ConstantFault> put_elements(const PayloadField& field, std::string_view text,
                                          std::span<std::byte> bytes) {
  std::vector<std::uint64_t> elements;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    if (elements.size() >= field.count)
      return in_value(begin, "there are more than the " + std::to_string(field.count) + " elements of " +
                                 type_in_words(field));
    PayloadField element = field;
    element.is_array = false;
    element.count = 1;
    const Bits bits = bits_of(element, text.substr(begin, end - begin));
    if (!bits) return in_value(begin, bits.error().what);
    elements.push_back(*bits);
    begin = end + 1;
  }
  for (std::size_t i = 0; i < elements.size(); ++i)
    write_bits(bytes, field.bit_offset + i * field.bit_size, field.bit_size, elements[i]);
  return std::nullopt;
}

// The element "ports[2]" of the array "ports", as a field.
std::optional<PayloadField> element_in(const Global& global, std::string_view name, std::string& fault) {
  const auto bracket = name.rfind('[');
  if (bracket == std::string_view::npos || !name.ends_with(']')) return std::nullopt;
  const auto array = std::ranges::find(global.layout.fields, name.substr(0, bracket), &PayloadField::name);
  if (array == global.layout.fields.end() || !array->is_array) return std::nullopt;
  const auto index = number_in(name.substr(bracket + 1, name.size() - bracket - 2));
  if (!index || index->is_negative || index->is_too_large || index->size >= array->count) {
    fault =
        std::string(name.substr(0, bracket)) + " has the elements 0 to " + std::to_string(array->count - 1);
    return std::nullopt;
  }
  PayloadField element = *array;
  element.bit_offset += static_cast<std::uint32_t>(index->size) * element.bit_size;
  element.count = 1;
  element.is_array = false;
  return element;
}

std::optional<ConstantFault> put_field(const PayloadField& field, std::optional<std::string_view> value,
                                       std::span<std::byte> bytes) {
  const std::uint64_t end = field.bit_offset + std::uint64_t{field.bit_size} * field.count;
  if (field.bit_size == 0 || field.bit_size > 64 || end > bytes.size() * 8)
    return in_name("the object's types are damaged: it is outside its variable");
  if (field.kind == FieldKind::Float)
    return in_name("it is a floating-point number, which BPF programs cannot use");
  if (!value && field.kind != FieldKind::Bool)
    return in_name("a value is missing: " + field.name + "=" +
                   (field.kind == FieldKind::Text ? "TEXT" : "N"));
  if (field.kind == FieldKind::Text) return put_text(field, *value, bytes);
  if (field.is_array) return put_elements(field, value.value_or(""), bytes);
  const Bits bits = bits_of(field, value.value_or("true"));
  if (!bits) {
    ConstantFault fault = in_value(0, bits.error().what);
    if (field.kind == FieldKind::Enum)
      for (const auto& each : field.enumerators) fault.known.push_back(each.second);
    return fault;
  }
  write_bits(bytes, field.bit_offset, field.bit_size, *bits);
  return std::nullopt;
}

}  // namespace

std::string type_in_words(const PayloadField& field) {
  const std::string number = (field.kind == FieldKind::Signed ? "s" : "u") + std::to_string(field.bit_size);
  const std::string name = field.kind == FieldKind::Text    ? "char"
                           : field.kind == FieldKind::Bool  ? "bool"
                           : field.kind == FieldKind::Enum  ? "enum"
                           : field.kind == FieldKind::Float ? "floating-point"
                                                            : number;
  const bool has_elements = field.is_array || field.kind == FieldKind::Text;
  return has_elements ? name + "[" + std::to_string(field.count) + "]" : name;
}

std::string constants_in_words(const std::vector<Global>& globals) {
  std::string words;
  std::size_t count = 0;
  for (const Global& global : globals) {
    if (!global.is_constant()) continue;
    for (const PayloadField& field : global.layout.fields) {
      if (++count > kMostListed) return words + ", ...";
      words += (words.empty() ? "" : ", ") + field.name + " (" + type_in_words(field) + ")";
    }
  }
  return words;
}

ConstantFault no_such_option(std::vector<Global> globals) {
  std::erase_if(globals, [](const Global& each) { return each.help.empty(); });
  ConstantFault fault = in_name("there is no such option; there are: " + constants_in_words(globals));
  for (const Global& each : globals) fault.known.push_back(each.name);
  return fault;
}

std::string_view variable_of(std::string_view name) { return name.substr(0, name.find_first_of(".[")); }

std::optional<ConstantFault> put_constant(const Global& global, std::string_view name,
                                          std::optional<std::string_view> value, std::span<std::byte> bytes) {
  const auto field = std::ranges::find(global.layout.fields, name, &PayloadField::name);
  if (field != global.layout.fields.end()) return put_field(*field, value, bytes);
  std::string fault;
  if (const auto element = element_in(global, name, fault)) return put_field(*element, value, bytes);
  if (!fault.empty()) return in_name(std::move(fault));
  if (!global.problem.empty()) return in_name(global.problem);
  return in_name("there is no " + quoted(name) + "; " + global.name + " has " + constants_in_words({global}));
}

}  // namespace tacho::bpf
