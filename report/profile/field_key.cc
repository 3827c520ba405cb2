#include "report/profile/field_key.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>

#include "format/records/perf_abi.h"
#include "report/samples/event_choice.h"
#include "report/samples/filter.h"
#include "report/samples/resolver.h"

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
      return static_cast<bool>(FieldKey::find_field("", name, schema, ""));
    };
    if (!names.empty() && std::ranges::all_of(names, is_there)) return names;
  }
  return default_keys(schema);
}

Result<FieldKey> FieldKey::find_field(std::string_view option, std::string_view name,
                                      const PayloadSchema& schema, std::string_view event) {
  FieldKey key;
  key.name_ = name;
  key.field_ = field_named(schema, name);
  if (key.field_ == nullptr) key.own_ = find_own_value(name);
  if (key.field_ != nullptr || key.own_ != nullptr) return key;
  std::string known;
  for (const PayloadField& one : schema.fields) known.append(known.empty() ? " " : ", ").append(one.name);
  return use_error(std::string(option) + ": there is no '" + std::string(name) + "'; take " +
                   own_value_names() +
                   (known.empty() ? std::string() : ", or a field of '" + std::string(event) + "':" + known));
}

KeyValue FieldKey::value(const ResolvedSample& sample) const {
  if (own_ != nullptr) {
    const auto own = own_->of(sample);
    return own ? key_value(*own) : KeyValue();
  }
  const auto value = read_field(*field_, sample.fields->raw, sample.order);
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

namespace {

constexpr std::size_t kMostPairBytes = std::size_t{64} << 20;  // of each of the two maps
constexpr std::size_t kNodeBytes = 96;                         // of an entry without its key
constexpr std::string_view kUsualKey = "sample.tid";           // also if a payload field is called tid

// Numbers are compared by value, also if their types in the two events differ.
KeyValue normal(KeyValue value) {
  const auto* const bits = std::get_if<std::uint64_t>(&value);
  if (bits != nullptr && static_cast<std::int64_t>(*bits) >= 0) return static_cast<std::int64_t>(*bits);
  return value;
}

std::size_t memory_of(const std::vector<KeyValue>& key) {
  std::size_t bytes = kNodeBytes + key.size() * sizeof(KeyValue);
  for (const KeyValue& value : key) {
    if (const auto* text = std::get_if<std::string>(&value)) bytes += text->size();
  }
  return bytes;
}

// The fields of "dev+sector".
Result<std::vector<FieldKey>> find_keys(std::string_view names, const PayloadSchema* schema,
                                        const std::string& event) {
  static const PayloadSchema kNone;
  std::vector<FieldKey> keys;
  while (true) {
    const std::size_t plus = names.find('+');
    auto key =
        FieldKey::find_field("--key", names.substr(0, plus), schema == nullptr ? kNone : *schema, event);
    if (!key) return std::move(key.error());
    keys.push_back(std::move(*key));
    if (plus == std::string_view::npos) return keys;
    names.remove_prefix(plus + 1);
  }
}

// Splits at the comma between two names of events.
Result<std::array<std::string, 2>> split_events(std::string_view text,
                                                const std::vector<std::string>& names) {
  const auto is_event = [&](std::string_view name) { return find_event(name, names).has_value(); };
  const bool is_alone = std::ranges::count(text, ',') == 1;  // then the message names the unknown event
  for (std::size_t comma = text.find(','); comma != std::string_view::npos;
       comma = text.find(',', comma + 1)) {
    const std::string_view first = text.substr(0, comma), second = text.substr(comma + 1);
    if (is_alone || (is_event(first) && is_event(second)))
      return std::array{std::string(first), std::string(second)};
  }
  return use_error(
      "--between takes two events, as in --between block:block_rq_issue,block:block_rq_complete; '" +
      std::string(text) + "' does not name two events of the capture");
}

Result<std::size_t> find_timed_event(const std::string& wanted, const format::EventSet& events,
                                     const std::vector<std::string>& names) {
  const auto event = find_event(wanted, names);
  if (!event) return not_one_event("--between", wanted, names);
  if ((events[*event].attr.sample_type & format::abi::kSampleTime) == 0)
    return use_error("--between: the samples of '" + wanted + "' have no times; record with -T");
  return *event;
}

}  // namespace

Result<EventPairs> EventPairs::find_events(const PairQuestion& question, const format::EventSet& events,
                                           const std::vector<std::string>& names, EventSchemas& schemas) {
  const auto wanted = split_events(question.events, names);
  if (!wanted) return wanted.error();
  if (question.keys.size() > 2)
    return use_error(
        "--key takes a field of the first event and one of the second; write several fields as dev+sector");
  std::array<std::size_t, 2> chosen{};
  std::array<std::vector<FieldKey>, 2> keys;
  for (std::size_t i = 0; i < 2; ++i) {
    auto event = find_timed_event((*wanted)[i], events, names);
    if (!event) return std::move(event.error());
    chosen[i] = *event;
    const std::string_view name = question.keys.empty() ? kUsualKey
                                  : i == 0              ? std::string_view(question.keys.front())
                                                        : std::string_view(question.keys.back());
    auto found = find_keys(name, schemas.schema_of(*event), names[*event]);
    if (!found) return std::move(found.error());
    keys[i] = std::move(*found);
  }
  if (keys[0].size() != keys[1].size())
    return use_error("--key: the first event has another number of fields than the second");
  EventPairs pairs;
  std::tie(pairs.first_, pairs.second_) = std::pair(chosen[0], chosen[1]);
  std::tie(pairs.first_keys_, pairs.second_keys_) = std::pair(std::move(keys[0]), std::move(keys[1]));
  return pairs;
}

std::optional<EventPairs::Key> EventPairs::key_of(const std::vector<FieldKey>& fields,
                                                  const ResolvedSample& sample) {
  Key key;
  key.reserve(fields.size());
  for (const FieldKey& field : fields) {
    key.push_back(normal(field.value(sample)));
    if (!std::holds_alternative<std::monostate>(key.back())) continue;
    lacking_ = &field;
    return std::nullopt;
  }
  return key;
}

std::optional<std::uint64_t> EventPairs::end(const Key& key) {
  for (Begun* const of : {&begun_, &older_}) {
    const auto found = of->find(key);
    if (found == of->end()) continue;
    if (of == &begun_) bytes_ -= memory_of(key);
    const std::uint64_t time = found->second;
    of->erase(found);
    return time;
  }
  return std::nullopt;
}

void EventPairs::begin(Key key, std::uint64_t time) {
  if (end(key)) ++replaced_;
  bytes_ += memory_of(key);
  begun_.emplace(std::move(key), time);
  if (bytes_ < kMostPairBytes) return;
  forgotten_ += older_.size();
  older_ = std::exchange(begun_, {});
  bytes_ = 0;
}

std::optional<std::uint64_t> EventPairs::take_sample(const ResolvedSample& sample) {
  std::optional<std::uint64_t> between;
  const std::uint64_t time = sample.fields->time;
  lacking_ = nullptr;
  if (sample.event_index == second_) {
    if (const auto key = key_of(second_keys_, sample)) {
      const auto begun = end(*key);
      if (!begun) ++without_begin_;
      if (begun && time >= *begun) between = time - *begun;
    }
  }
  if (sample.event_index == first_) {
    if (auto key = key_of(first_keys_, sample)) begin(std::move(*key), time);
  }
  return between;
}

}  // namespace tacho::report
