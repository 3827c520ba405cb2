#include "report/views/calls/call_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>

#include "report/output/text_output.h"

namespace tacho::report {
namespace {

using symbolize::Argument;
using symbolize::EnumNames;
using symbolize::ValueType;
using Kind = ValueType::Kind;

constexpr std::string_view kNotKnown = "?", kReturned = "returned";
constexpr std::size_t kMostRegisters = 16;

std::uint64_t cut(std::uint64_t bits, std::uint8_t bytes) {
  return bytes >= sizeof bits ? bits : bits & ((std::uint64_t{1} << (8 * bytes)) - 1);
}
std::int64_t with_sign(std::uint64_t bits, std::uint8_t bytes) {
  const unsigned unused = bytes >= sizeof bits ? 0 : 64 - 8U * bytes;
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

// "READ", or "READ|SYNC" for flags; the number when there is no enumerator.
std::string enum_text(const EnumNames& names, std::uint64_t bits, std::uint8_t bytes, bool escapes) {
  const auto shown_name = [escapes](const std::string& name) { return escapes ? printable(name) : name; };
  const std::int64_t number = with_sign(bits, bytes);
  const std::uint64_t plain = cut(bits, bytes);
  const auto is_it = [&](const auto& one) {
    return one.first == number || static_cast<std::uint64_t>(one.first) == plain;
  };
  if (const auto one = std::ranges::find_if(names, is_it); one != names.end())
    return shown_name(std::string(one->second));
  std::string flags;
  std::uint64_t left = plain;
  for (const auto& [value, name] : names) {
    const auto bit = static_cast<std::uint64_t>(value);
    if (bit == 0 || (bit & (bit - 1)) != 0 || (left & bit) == 0) continue;
    flags += std::string(flags.empty() ? "" : "|") + shown_name(std::string(name));
    left &= ~bit;
  }
  return left == 0 && !flags.empty() ? flags : fmt::format("{}", number);
}

// Writes nothing if no register held the value.
void describe_value(JsonFields& to, std::string_view name, const ValueType& type,
                    std::optional<std::uint64_t> bits, std::optional<std::string_view> text) {
  if (!bits) return;
  const char letter = static_cast<char>(*bits & 0xff);
  if (type.kind == Kind::Unsigned) {
    to.number(name, cut(*bits, type.bytes));
  } else if (type.kind == Kind::Signed) {
    to.signed_number(name, with_sign(*bits, type.bytes));
  } else if (type.kind == Kind::Bool) {
    to.flag(name, cut(*bits, type.bytes) != 0);
  } else if (type.kind == Kind::Character && letter >= ' ' && letter <= '~') {
    to.text(name, std::string_view(&letter, 1));
  } else if (type.kind == Kind::Character) {
    to.signed_number(name, with_sign(*bits, 1));
  } else if ((type.kind == Kind::Text || type.kind == Kind::Pointer) && *bits == 0) {
    to.json(name, "null");
  } else if (type.kind == Kind::Text && text) {
    to.text(name, *text);
  } else if (type.kind == Kind::Pointer || type.kind == Kind::Text) {
    to.hex(name, *bits);
  } else if (type.kind == Kind::Enumeration) {
    to.text(name, enum_text(*type.names, *bits, type.bytes, false));
  }
}

std::string character_text(std::uint64_t bits) {
  const auto c = static_cast<char>(bits & 0xff);
  if (c < ' ' || c > '~') return fmt::format("{}", with_sign(bits, 1));
  return c == '\'' || c == '\\' ? fmt::format("'\\{}'", c) : fmt::format("'{}'", c);
}

// A register's value by its type: "-3", "true", "'x'", "KIND_A", "0x7ffe10", with `text` "\"GET /\"".
std::string value_text(const ValueType& type, std::uint64_t bits, std::optional<std::string_view> text) {
  switch (type.kind) {
    case Kind::Unsigned:
      return fmt::format("{}", cut(bits, type.bytes));
    case Kind::Signed:
      return fmt::format("{}", with_sign(bits, type.bytes));
    case Kind::Bool:
      return cut(bits, type.bytes) != 0 ? "true" : "false";
    case Kind::Character:
      return character_text(bits);
    case Kind::Enumeration:
      return enum_text(*type.names, bits, type.bytes, true);
    case Kind::Text:
      if (bits != 0 && text) return '"' + printable_quoted(*text) + '"';
      [[fallthrough]];
    case Kind::Pointer:
      return bits == 0 ? "NULL" : fmt::format("{:#x}", bits);
    case Kind::Floating:
    case Kind::Struct:
      break;
  }
  return std::string(kNotKnown);
}

}  // namespace

CallValues::Held CallValues::held(const Call& call) const {
  using Is = CallValue::Is;
  Held held;
  std::uint64_t unread = 0;
  for (const CallValue& value : list_->values(call)) {
    if (value.is == Is::Argument && value.index < kMostRegisters) {
      held.registers.resize(std::max<std::size_t>(held.registers.size(), value.index + 1U));
      held.registers[value.index] = value.value;
    }
    if (value.is == Is::Returned) held.returned = value.value;
    const auto text = [&] { return std::string_view(list_->text(static_cast<std::uint32_t>(value.value))); };
    if (value.is == Is::ArgumentText) held.texts.push_back(text());
    if (value.is == Is::ReturnedText) held.returned_text = text();
    if (value.is == Is::Unread) unread = value.value;
  }
  constexpr std::uint64_t kReturnedText = 4;
  for (std::size_t i = 0; i < std::min<std::size_t>(held.texts.size(), 2); ++i)
    if ((unread >> i & 1) != 0) held.texts[i].reset();
  if ((unread & kReturnedText) != 0) held.returned_text.reset();
  return held;
}

// The recorder read the texts of the first arguments that point to one, in the registers' order.
std::vector<CallValues::Shown> CallValues::shown(const Call& call, const Held& held) const {
  std::vector<Shown> all;
  const Prototype* const prototype = this->prototype(call);
  if (prototype == nullptr) return all;
  std::vector<std::uint8_t> texts;
  for (const Argument& argument : prototype->arguments)
    if (argument.type.kind == Kind::Text && argument.integer_register != Argument::kNoRegister)
      texts.push_back(argument.integer_register);
  std::ranges::sort(texts);
  for (const Argument& argument : prototype->arguments) {
    Shown& one = all.emplace_back(Shown{.argument = &argument, .bits = {}, .text = {}});
    if (argument.integer_register < held.registers.size())
      one.bits = held.registers[argument.integer_register];
    if (argument.type.kind != Kind::Text) continue;
    const auto at =
        static_cast<std::size_t>(std::ranges::find(texts, argument.integer_register) - texts.begin());
    if (at < held.texts.size()) one.text = held.texts[at];
  }
  return all;
}

std::string CallValues::arguments(const Call& call) const {
  std::string text;
  for (const Shown& one : shown(call, held(call))) {
    if (!text.empty()) text += ", ";
    if (!one.argument->name.empty()) text += printable(one.argument->name) + '=';
    text += one.bits ? value_text(one.argument->type, *one.bits, one.text) : std::string(kNotKnown);
  }
  return text;
}

std::string CallValues::returned(const Call& call) const {
  const Prototype* const prototype = this->prototype(call);
  if (prototype == nullptr || !prototype->returned) return {};
  const Held held = this->held(call);
  return held.returned ? value_text(*prototype->returned, *held.returned, held.returned_text) : std::string();
}

void CallValues::describe_in_order(JsonFields& to, const Call& call) const {
  const Prototype* const prototype = this->prototype(call);
  if (prototype == nullptr) return;
  const Held held = this->held(call);
  to.begin_list("arguments");
  for (const Shown& one : shown(call, held)) {
    to.begin_object("");
    to.text("name", one.argument->name);
    to.text("type", one.argument->type.name);
    describe_value(to, "value", one.argument->type, one.bits, one.text);
    to.end_object();
  }
  to.end_list();
  if (!prototype->returned) return;
  to.begin_object("returned");
  to.text("type", prototype->returned->name);
  describe_value(to, "value", *prototype->returned, held.returned, held.returned_text);
  to.end_object();
}

void CallValues::describe_by_name(JsonFields& to, const Call& call) const {
  const Prototype* const prototype = this->prototype(call);
  if (prototype == nullptr) return;
  const Held held = this->held(call);
  std::set<std::string> taken{std::string(kReturned)};
  std::size_t number = 0;
  for (const Shown& one : shown(call, held)) {
    ++number;
    std::string name = one.argument->name;
    if (name.empty() || !taken.insert(name).second) name = fmt::format("arg{}.{}", number, name);
    taken.insert(name);
    describe_value(to, name, one.argument->type, one.bits, one.text);
  }
  if (prototype->returned)
    describe_value(to, kReturned, *prototype->returned, held.returned, held.returned_text);
}

}  // namespace tacho::report
