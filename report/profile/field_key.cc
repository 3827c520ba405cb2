#include "report/profile/field_key.h"

#include <algorithm>
#include <iterator>

namespace tacho::report {
namespace {

constexpr std::string_view kOwnPrefix = "sample.";

struct OwnRow {
  std::string_view name;
  KeyValue (*value)(const ResolvedSample&);
};

KeyValue number(std::uint32_t value) { return std::int64_t{static_cast<std::int32_t>(value)}; }

constexpr OwnRow kOwn[] = {
    {"comm", [](const ResolvedSample& sample) -> KeyValue { return std::string(sample.comm); }},
    {"pid", [](const ResolvedSample& sample) { return number(sample.pid()); }},
    {"tid", [](const ResolvedSample& sample) { return number(sample.tid()); }},
    {"cpu", [](const ResolvedSample& sample) { return number(sample.raw->cpu); }},
};

const OwnRow* find_own(std::string_view name) {
  const auto row = std::ranges::find(kOwn, name, &OwnRow::name);
  return row == std::end(kOwn) ? nullptr : row;
}

}  // namespace

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
  if (field == nullptr) return std::to_string(std::get<std::int64_t>(value));
  FieldValue number;
  if (const auto* bits = std::get_if<std::uint64_t>(&value)) number = *bits;
  if (const auto* whole = std::get_if<std::int64_t>(&value)) number = *whole;
  if (const auto* real = std::get_if<double>(&value)) number = *real;
  return show_value(*field, number, names);
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
  std::string_view own = name;
  if (own.starts_with(kOwnPrefix)) own.remove_prefix(kOwnPrefix.size());
  if (const OwnRow* row = find_own(own)) {
    key.own_ = row->value;
    return key;
  }
  std::string known;
  for (const PayloadField& one : schema.fields) known.append(known.empty() ? " " : ", ").append(one.name);
  return use_error(std::string(option) + ": there is no '" + std::string(name) +
                   "'; take comm, pid, tid, cpu" +
                   (known.empty() ? std::string() : ", or a field of '" + std::string(event) + "':" + known));
}

KeyValue FieldKey::value(const ResolvedSample& sample) const {
  if (own_ != nullptr) return own_(sample);
  const auto value = read_field(*field_, sample.raw->raw, sample.order);
  return value ? key_value(*value) : KeyValue();
}

bool FieldKey::hides_own() const { return field_ != nullptr && find_own(name_) != nullptr; }

}  // namespace tacho::report
