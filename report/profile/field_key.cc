#include "report/profile/field_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/samples/address_name.h"
#include "report/samples/filter.h"

namespace tacho::report {
std::strong_ordering compare(const KeyValue& a, const KeyValue& b) {
  if (a.index() != b.index()) return a.index() <=> b.index();
  return std::visit(
      [&b]<class T>(const T& left) -> std::strong_ordering {
        const T& right = std::get<T>(b);
        if constexpr (std::is_same_v<T, double>) {
          return std::strong_order(left, right);
        } else {
          return left <=> right;
        }
      },
      a);
}

bool KeyValuesLess::operator()(const std::vector<KeyValue>& a, const std::vector<KeyValue>& b) const {
  const std::size_t both = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (const auto order = compare(a[i], b[i]); order != 0) return order < 0;
  }
  return a.size() < b.size();
}

KeyValue key_value(const FieldValue& value) {
  return std::visit(
      []<class T>(const T& one) -> KeyValue {
        if constexpr (std::is_same_v<T, std::string_view>) {
          return std::string(one);
        } else {
          return one;
        }
      },
      value);
}

std::string show_key(const PayloadField* field, const KeyValue& value, Names names) {
  if (std::holds_alternative<std::monostate>(value)) return "?";
  if (const auto* text = std::get_if<std::string>(&value)) return printable(*text, names);
  if (field == nullptr) {
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
    if (const auto* bits = std::get_if<std::uint64_t>(&value)) return std::to_string(*bits);
    return fmt::format("{:.9f}", std::get<double>(value));  // seconds
  }
  FieldValue number;
  if (const auto* bits = std::get_if<std::uint64_t>(&value)) number = *bits;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) number = *whole;
  if (const auto* real = std::get_if<double>(&value)) number = *real;
  return show_value(*field, number, names);
}

std::vector<std::string> default_keys(const PayloadSchema& schema) {
  std::vector<std::string> names;
  for (const std::string_view role : {"function", "key"}) {
    for (const PayloadField& field : schema.fields)
      if (field.role == role) names.push_back(field.name);
    if (!names.empty()) break;
  }
  return names;
}

std::vector<std::string> default_table_keys(const PayloadSchema& schema) {
  constexpr std::string_view kTable = "table:";
  for (const PayloadField& field : schema.fields) {
    if (!field.role.starts_with(kTable)) continue;
    auto names = parse_name_list(field.role.substr(kTable.size()));
    const auto is_there = [&schema](const std::string& name) {
      return static_cast<bool>(FieldKey::find("", name, schema, ""));
    };
    if (!names.empty() && std::ranges::all_of(names, is_there)) return names;
  }
  return default_keys(schema);
}

Result<FieldKey> FieldKey::find(std::string_view option, std::string_view name, const PayloadSchema& schema,
                                std::string_view event) {
  FieldKey key;
  key.name_ = name;
  const auto field = std::ranges::find(schema.fields, name, &PayloadField::name);
  if (field != schema.fields.end()) {
    key.field_ = &*field;
    return key;
  }
  key.own_ = find_own_value(name);
  if (key.own_ != nullptr) return key;
  std::string known;
  for (const PayloadField& one : schema.fields) known.append(known.empty() ? " " : ", ").append(one.name);
  return use_error(std::string(option) + ": there is no '" + std::string(name) + "'; take " +
                   own_value_names() +
                   (known.empty() ? std::string() : ", or a field of '" + std::string(event) + "':" + known));
}

KeyValue FieldKey::value(const ResolvedSample& sample) const {
  if (own_ != nullptr) return key_value(own_->of(sample));
  const auto value = read_field(*field_, sample.raw->raw, sample.order);
  return value ? key_value(*value) : KeyValue();
}

KeyValue FieldKey::named_value(const ResolvedSample& sample, Resolver& resolver) const {
  KeyValue plain = value(sample);
  const auto* const address = std::get_if<std::uint64_t>(&plain);
  if (field_ == nullptr || address == nullptr || !is_named_address(*field_)) return plain;
  std::string name = address_name(resolver, sample, *address);
  return name.empty() ? std::move(plain) : KeyValue(std::move(name));
}

bool FieldKey::hides_own() const { return field_ != nullptr && find_own_value(name_) != nullptr; }

}  // namespace tacho::report
