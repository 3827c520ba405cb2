// Times between plain events: from one of the first kind to the next of the second kind that has the same
// key. So latency needs no program in the kernel, only two events in a capture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/base/result.h"
#include "report/decode/payload.h"
#include "report/profile/field_key.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

struct PairQuestion {
  // The first and the second, which may be the same, with a comma between them; empty: no pairs. Their names
  // may have commas, too: "cpu/mem-loads,ldlat=30/P,page-faults".
  std::string events;
  // Of the first, and of the second where it is called otherwise there; none: the thread. "dev+sector": both.
  std::vector<std::string> keys;
};

class EventPairs {
 public:
  // `names`: of all events. An error of the use: events or keys that there are not, events without times.
  // `schemas` must outlive this.
  static Result<EventPairs> find(const PairQuestion& question, const format::EventSet& events,
                                 const std::vector<std::string>& names, EventSchemas& schemas);

  std::size_t first() const { return first_; }
  // The event that ends a pair.
  std::size_t second() const { return second_; }
  // Nanoseconds since the first event of this key, when the sample ends a pair. Where a first event comes
  // again before the second, the later one counts. Samples must come in the order of their times.
  std::optional<std::uint64_t> take(const ResolvedSample& sample);
  // The field of a key that the payload of the last sample ended before: so it is in no pair. Null: it has
  // all.
  const FieldKey* lacking() const { return lacking_; }

  // First events whose second was not seen, and the other way round.
  std::uint64_t without_end() const { return begun_.size() + older_.size() + replaced_ + forgotten_; }
  std::uint64_t without_begin() const { return without_begin_; }
  // First events that were given up: of keys that never come again there could be any number.
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
  // First events that wait: when the younger ones have become many, they are the older ones, and the older
  // ones before them are given up.
  Begun begun_, older_;
  std::size_t bytes_ = 0;  // about, of begun_
  std::uint64_t replaced_ = 0, forgotten_ = 0, without_begin_ = 0;
};

}  // namespace tacho::report
