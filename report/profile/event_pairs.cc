#include "report/profile/event_pairs.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>

#include "format/records/perf_abi.h"
#include "report/samples/event_choice.h"

namespace tacho::report {
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
    auto key = FieldKey::find("--key", names.substr(0, plus), schema == nullptr ? kNone : *schema, event);
    if (!key) return std::move(key.error());
    keys.push_back(std::move(*key));
    if (plus == std::string_view::npos) return keys;
    names.remove_prefix(plus + 1);
  }
}

// Splits at the comma between two names of events.
Result<std::array<std::string, 2>> split_events(std::string_view text,
                                                const std::vector<std::string>& names) {
  const auto is_event = [&](std::string_view name) { return report::find_event(name, names).has_value(); };
  const bool is_alone = std::ranges::count(text, ',') == 1;  // then the message names the unknown event
  for (std::size_t comma = text.find(','); comma != std::string_view::npos;
       comma = text.find(',', comma + 1)) {
    const std::string_view first = text.substr(0, comma), second = text.substr(comma + 1);
    if (is_alone || (is_event(first) && is_event(second)))
      return std::array{std::string(first), std::string(second)};
  }
  return use_error(
      "--between takes two events, as in --between block:block_rq_issue,block:block_rq_complete; '" +
      std::string(text) + "' is no two of the capture's");
}

Result<std::size_t> find_event(const std::string& wanted, const format::EventSet& events,
                               const std::vector<std::string>& names) {
  const auto event = report::find_event(wanted, names);
  if (!event) return not_one_event("--between", wanted, names);
  if ((events[*event].attr.sample_type & format::abi::kSampleTime) == 0)
    return use_error("--between: the samples of '" + wanted + "' have no times; record with -T");
  return *event;
}

}  // namespace

Result<EventPairs> EventPairs::find(const PairQuestion& question, const format::EventSet& events,
                                    const std::vector<std::string>& names, EventSchemas& schemas) {
  const auto wanted = split_events(question.events, names);
  if (!wanted) return wanted.error();
  if (question.keys.size() > 2)
    return use_error(
        "--key takes a field of the first event and one of the second; several fields together "
        "are written dev+sector");
  std::array<std::size_t, 2> chosen{};
  std::array<std::vector<FieldKey>, 2> keys;
  for (std::size_t i = 0; i < 2; ++i) {
    auto event = find_event((*wanted)[i], events, names);
    if (!event) return std::move(event.error());
    chosen[i] = *event;
    const std::string_view name = question.keys.empty() ? kUsualKey
                                  : i == 0              ? std::string_view(question.keys.front())
                                                        : std::string_view(question.keys.back());
    auto found = find_keys(name, schemas.of(*event), names[*event]);
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

std::optional<std::uint64_t> EventPairs::take(const ResolvedSample& sample) {
  std::optional<std::uint64_t> between;
  const std::uint64_t time = sample.raw->time;
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
