// Keys of samples: a value that each sample has, by which views group, and pairs of events with equal keys.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "format/base/result.h"
#include "report/decode/payload.h"
#include "report/query/expressions.h"
#include "report/samples/resolved_sample.h"
#include "report/samples/resolver.h"

namespace tacho::report {

// A value that outlives its sample; monostate: the payload is too short for the field,
// or the sample has no time.
using KeyValue = std::variant<std::monostate, std::uint64_t, std::int64_t, double, std::string>;

// Numbers by value, texts by bytes; doubles have a total order, with NaN.
std::strong_ordering compare(const KeyValue& a, const KeyValue& b);
struct KeyValueLess {
  bool operator()(const KeyValue& a, const KeyValue& b) const { return compare(a, b) < 0; }
};
struct KeyValuesLess {
  bool operator()(const std::vector<KeyValue>& a, const std::vector<KeyValue>& b) const;
};

KeyValue key_value(const FieldValue& value);
// As show_value(), but texts have no quotes; "?" for a missing value.
std::string show_key(const PayloadField* field, const KeyValue& value, Names names);

// The fields by which an event is grouped by default: those tagged role:function, else those tagged role:key.
std::vector<std::string> default_keys(const PayloadSchema& schema);
// The same for tables: the keys of a role "table:KEYS", if there is one, else default_keys().
std::vector<std::string> default_table_keys(const PayloadSchema& schema);

// A value by which samples are grouped: a field of the payload or tracepoint, or the sample's thread, process
// or CPU.
class FieldKey {
 public:
  // The field of `schema` with this name, or else the sample's own value (own_values()). With "sample."
  // before the name it is the sample's own value in any case. The usage error lists the names; `option` and
  // `event` are in its text. `schema` must outlive the key.
  static Result<FieldKey> find_field(std::string_view option, std::string_view name,
                                     const PayloadSchema& schema, std::string_view event);

  KeyValue value(const ResolvedSample& sample) const;
  // The same, but an address of code or data becomes its symbol, if that is known.
  KeyValue named_value(const ResolvedSample& sample, Resolver& resolver) const;
  std::string show(const KeyValue& value, Names names) const { return show_key(field_, value, names); }
  // Whether a field hides the sample's own value of the same name: worth a note.
  bool hides_own() const;
  const std::string& name() const { return name_; }
  const PayloadField* field() const { return field_; }  // null: the sample's own value

 private:
  std::string name_;
  const PayloadField* field_ = nullptr;
  const OwnValue* own_ = nullptr;  // set if field_ is null
};

// The options --between and --key.
struct PairQuestion {
  // "FIRST,SECOND", which may be the same event; empty: no pairs. The names may have commas themselves:
  // "cpu/mem-loads,ldlat=30/P,page-faults".
  std::string events;
  // The key's field in the first event and, if it has another name there, in the second. "dev+sector" is a
  // key of two fields. Empty: the thread.
  std::vector<std::string> keys;
};

// hist --between: the time from each first event to the next second event with the same key. So a latency can
// be measured from any two events in a capture, without a BPF program.
class EventPairs {
 public:
  // `names` are those of all events. Refused: unknown events or keys, events without times. `schemas` must
  // outlive this.
  static Result<EventPairs> find_events(const PairQuestion& question, const format::EventSet& events,
                                        const std::vector<std::string>& names, EventSchemas& schemas);

  std::size_t first() const { return first_; }
  // The event that ends a pair.
  std::size_t second() const { return second_; }
  // The time (ns) since the first event with this key, if the sample is its second event. If the first event
  // repeats before that, the later one counts. Samples must come in the order of their times.
  std::optional<std::uint64_t> take_sample(const ResolvedSample& sample);
  // If the payload of the last sample was too short for its key (so it is in no pair), the missing field;
  // else null.
  const FieldKey* lacking() const { return lacking_; }

  // The number of first events without a second one, and of second events without a first one.
  std::uint64_t without_end() const { return begun_.size() + older_.size() + replaced_ + forgotten_; }
  std::uint64_t without_begin() const { return without_begin_; }
  // The number of first events that were dropped to bound the memory.
  std::uint64_t forgotten() const { return forgotten_; }

 private:
  using Key = std::vector<KeyValue>;
  using Begun = std::map<Key, std::uint64_t, KeyValuesLess>;  // times, ns
  std::optional<Key> key_of(const std::vector<FieldKey>& fields, const ResolvedSample& sample);
  void begin(Key key, std::uint64_t time);
  std::optional<std::uint64_t> end(const Key& key);

  std::size_t first_ = 0, second_ = 0;
  std::vector<FieldKey> first_keys_, second_keys_;
  const FieldKey* lacking_ = nullptr;
  // First events that wait for their second one, in two generations: when `begun_` is full it replaces
  // `older_`, whose events are dropped.
  Begun begun_, older_;
  std::size_t bytes_ = 0;  // approximate, of `begun_`
  std::uint64_t replaced_ = 0, forgotten_ = 0, without_begin_ = 0;
};

}  // namespace tacho::report
