#include "report/decode/prototype_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace tacho::report {
namespace {

using symbolize::Argument;
using symbolize::EnumNames;
using symbolize::ValueType;
using Kind = ValueType::Kind;

constexpr std::pair<Kind, char> kLetters[] = {
    {Kind::Unsigned, 'u'},  {Kind::Signed, 'i'},      {Kind::Bool, 'b'},
    {Kind::Character, 'c'}, {Kind::Enumeration, 'e'}, {Kind::Pointer, 'p'},
    {Kind::Text, 't'},      {Kind::Floating, 'f'},    {Kind::Struct, 's'},
};
constexpr std::size_t kMostArguments = 64, kMostNames = 4096;

// The text with `?` for control characters: tabs and newlines separate the fields.
std::string without_separators(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(
      out, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
  return out;
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t at = 0; at <= line.size() && fields.size() <= 2 * kMostNames;) {
    const std::size_t end = std::min(line.find('\t', at), line.size());
    fields.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return fields;
}

template <class Number>
bool parse_number(std::string_view text, Number& value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc{} && end == text.data() + text.size() && !text.empty();
}

using Enumerations = std::vector<std::shared_ptr<const EnumNames>>;

// "i4", "e4:0"
std::optional<ValueType> type_of(std::string_view code, std::string_view name,
                                 const Enumerations& enumerations) {
  if (code.empty()) return std::nullopt;
  const auto letter = std::ranges::find(kLetters, code.front(), &std::pair<Kind, char>::second);
  if (letter == std::end(kLetters)) return std::nullopt;
  ValueType type{.kind = letter->first, .name = std::string(name), .names = nullptr};
  const std::size_t colon = std::min(code.find(':'), code.size());
  if (!parse_number(code.substr(1, colon - 1), type.bytes)) return std::nullopt;
  if (type.bytes != 1 && type.bytes != 2 && type.bytes != 4 && type.bytes != 8) return std::nullopt;
  if (type.kind != Kind::Enumeration) return type;
  std::size_t number = 0;
  if (colon == code.size() || !parse_number(code.substr(colon + 1), number) || number >= enumerations.size())
    return std::nullopt;
  type.names = enumerations[number];
  return type;
}

std::shared_ptr<const EnumNames> names_of(std::span<const std::string_view> fields) {
  EnumNames names;
  for (std::size_t i = 0; i + 1 < fields.size() && names.size() < kMostNames; i += 2) {
    std::int64_t value = 0;
    if (parse_number(fields[i], value)) names.emplace_back(value, fields[i + 1]);
  }
  return std::make_shared<const EnumNames>(std::move(names));
}

}  // namespace

std::string PrototypeWriter::type_text(const ValueType& type) {
  const auto* const letter = std::ranges::find(kLetters, type.kind, &std::pair<Kind, char>::first);
  std::string code = fmt::format("{}{}", letter->second, type.bytes);
  if (type.kind == Kind::Enumeration) {
    const auto [known, is_new] = enumerations_.try_emplace(type.names.get(), enumerations_.size());
    if (is_new) {
      text_ += "enum";
      for (const auto& [value, name] : *type.names)
        text_ += fmt::format("\t{}\t{}", value, without_separators(name));
      text_ += '\n';
    }
    code += fmt::format(":{}", known->second);
  }
  return code + '\t' + without_separators(type.name);
}

void PrototypeWriter::add_prototype(std::uint64_t offset, const Prototype& prototype) {
  std::string lines = fmt::format("function\t{}", offset);
  if (prototype.returned) lines += '\t' + type_text(*prototype.returned);
  lines += '\n';
  for (const Argument& argument : prototype.arguments) {
    const std::string word = argument.integer_register == Argument::kNoRegister
                                 ? "-"
                                 : fmt::format("{}", argument.integer_register);
    lines += fmt::format("argument\t{}\t{}\t{}\n", word, type_text(argument.type),
                         without_separators(argument.name));
  }
  text_ += lines;  // after the enumerations that it refers to
}

std::unordered_map<std::uint64_t, Prototype> read_prototypes(std::string_view text, std::size_t& left) {
  std::unordered_map<std::uint64_t, Prototype> all;
  Enumerations enumerations;
  Prototype* current = nullptr;
  const auto charge = [&left](std::size_t count) { left -= std::min(left, count); };
  while (!text.empty() && left > 0) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto fields = fields_of(line);
    if (fields[0] == "begin") {  // numbers of enumerations start at 0 again
      enumerations.clear();
    } else if (fields[0] == "enum") {
      enumerations.push_back(names_of(std::span(fields).subspan(1)));
      charge(1 + enumerations.back()->size());
    } else if (fields[0] == "function" && fields.size() >= 2) {
      charge(1);
      std::uint64_t offset = 0;
      current = parse_number(fields[1], offset) ? &all.try_emplace(offset).first->second : nullptr;
      if (current == nullptr) continue;
      *current = {};
      if (fields.size() >= 4) current->returned = type_of(fields[2], fields[3], enumerations);
    } else if (fields[0] == "argument" && fields.size() >= 5 && current != nullptr &&
               current->arguments.size() < kMostArguments) {
      charge(1);
      Argument argument{.name = std::string(fields[4]), .type = {}};
      if (std::uint8_t word = 0; parse_number(fields[1], word)) argument.integer_register = word;
      auto type = type_of(fields[2], fields[3], enumerations);
      // A type that is not understood has a size, so the arguments after it are found.
      if (type) argument.type = std::move(*type);
      if (!type) argument.type.kind = Kind::Struct;
      current->arguments.push_back(std::move(argument));
    }
  }
  return all;
}

}  // namespace tacho::report
