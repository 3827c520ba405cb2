// Samples taken apart before their turn.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "format/records/event_set.h"
#include "format/records/perf_abi.h"
#include "format/records/sample.h"
#include "report/samples/ordered_records.h"
#include "report/samples/stack_table.h"

namespace tacho::report {

// A few records ahead, where these are at hand: then what a call chain needs is on its way into the caches
// when it is asked for.
class SamplesAhead {
 public:
  // Null when the record is shorter than its fields say. `attr`: of the record's event.
  const format::Sample* parse(const format::RecordView& record, const format::EventAttr& attr) {
    One& one = ring_[given_ % ring_.size()];
    return one.due == given_ ? one.sample : one.parser.parse(record, attr);
  }
  // The number of the record that was given last, counted from 1 up.
  std::uint64_t given() const { return given_; }
  // `feed` has given a record; looks at a later one. Its chain is told to `stacks`.
  void record_given(const RecordFeed& feed, const format::EventSet& events, StackTable& stacks) {
    constexpr std::size_t kAhead = 4;  // records
    static_assert(kAhead < std::tuple_size_v<decltype(ring_)>);
    ++given_;
    std::uint32_t event = 0;
    const auto record = feed.upcoming(kAhead, event);
    if (!record || record->type != format::abi::kRecordSample) return;
    One& one = ring_[(given_ + kAhead) % ring_.size()];
    one.sample = one.parser.parse(*record, events[event].attr);
    one.due = given_ + kAhead;
    if (one.sample != nullptr && one.sample->callchain.size() > 0)
      stacks.expect(one.sample->pid, one.sample->callchain.bytes(), one.due);
  }

 private:
  struct One {
    std::uint64_t due = 0;  // given() when it is the record's turn; 0: never
    const format::Sample* sample = nullptr;
    format::SampleParser parser;
  };
  std::array<One, 8> ring_;
  std::uint64_t given_ = 0;
};

}  // namespace tacho::report
