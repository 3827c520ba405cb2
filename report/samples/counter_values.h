// Increases of counter values between successive samples with PERF_SAMPLE_READ.
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

class CounterDeltas {
 public:
  struct Delta {
    std::size_t event = 0;
    std::uint64_t value = 0;  // since the value before; never 0
  };

  // Sets `deltas` to the counters whose value changed since the previous sample; `attr` is the sample's
  // event. Returns the number of values whose id belongs to no event. With `inherit`, each thread has a
  // counter of its own, all with one id.
  std::size_t update(const format::Sample& sample, const format::EventAttr& attr,
                     const format::EventSet& events, std::vector<Delta>& deltas) {
    const bool is_per_thread = attr.has(format::abi::kInherit) && attr.samples(format::abi::kSampleTid);
    std::size_t unknown = 0;
    deltas.clear();
    for (std::size_t i = 0; i < sample.read.size(); ++i) {
      const auto entry = sample.read.entry(i);
      const auto event = events.find_id(entry.id);
      if (!event) {
        ++unknown;
        continue;
      }
      std::uint64_t& last = last_[{entry.id, is_per_thread ? sample.tid : 0}];
      const std::uint64_t delta = entry.value - std::exchange(last, entry.value);
      if (delta != 0) deltas.push_back({*event, delta});
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
