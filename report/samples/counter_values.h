// Counter values in samples with PERF_SAMPLE_READ, and their increase since the previous sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "format/base/seeded_hash.h"
#include "format/records/event_set.h"
#include "format/records/sample.h"

namespace tacho::report {

class CounterValues {
 public:
  struct Moved {
    std::size_t event = 0;
    std::uint64_t by = 0;  // since the value before; never 0
  };

  // Takes the values of a sample of the event `attr`; leaves in `moved` those that changed. A value whose id
  // is no event's is left out and counted. Inherited events count in each thread for itself, under one id.
  std::size_t take(const format::Sample& sample, const format::EventAttr& attr,
                   const format::EventSet& events, std::vector<Moved>& moved) {
    const bool is_per_thread = attr.has(format::abi::kInherit) && attr.samples(format::abi::kSampleTid);
    std::size_t unknown = 0;
    moved.clear();
    for (std::size_t i = 0; i < sample.read.size(); ++i) {
      const auto entry = sample.read.entry(i);
      std::uint64_t& last = last_[{entry.id, is_per_thread ? sample.tid : 0}];
      const std::uint64_t by = entry.value - std::exchange(last, entry.value);
      const auto event = events.find_id(entry.id);
      if (!event) ++unknown;
      if (event && by != 0) moved.push_back({*event, by});
    }
    return unknown;
  }

 private:
  struct Key {
    std::uint64_t id = 0;
    std::uint32_t tid = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    format::SeededHash of_id, of_tid;
    std::size_t operator()(const Key& key) const { return of_tid(of_id(key.id) ^ key.tid); }
  };
  std::unordered_map<Key, std::uint64_t, KeyHash> last_;
};

}  // namespace tacho::report
