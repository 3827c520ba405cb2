// Samples on their way from the thread that reads a capture to the one that shows them.
//
// How far the reader runs ahead is bounded by the bytes that the samples hold in memory: of their records, or
// of what travels in place of these.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "format/container/time_order.h"
#include "report/samples/batch_queue.h"
#include "report/samples/ordered_records.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

// A resolved sample, but for the fields of its record: taking those apart again is cheaper than copying them
// all. It fills one cache line, as lines are what travels between processors.
struct alignas(64) QueuedSample {
  const std::byte* record = nullptr;  // the whole, header included; null: nobody looks at it, see SampleBatch
  std::uint16_t size = 0;             // bytes: a record's size has 16 bits
  std::uint16_t block = 0;            // what the record lies in: a number in the batch
  std::uint32_t location = 0;         // number
  std::uint64_t period = 0;
  const Thread* thread = nullptr;
  std::string_view comm;
  const Stack* stack = nullptr;
  std::uint32_t event_index = 0;        // as in ResolvedSample
  std::uint32_t record_event : 31 = 0;  // as in ResolvedSample: a capture has fewer events
  std::uint32_t has_payload_stack : 1 = 0;
};

// What a view reads that looks at no more of a record (Sink::Reads::Start).
struct QueuedStart {
  SampleStart fields;
  std::uint64_t time = 0;  // ns
};

struct SampleBatch {
  std::vector<QueuedSample> samples;     // at most 65,536, so that a block's number fits
  std::vector<format::BlockRef> blocks;  // what the records lie in
  // Of each sample, in place of its record; empty: the records travel, or nobody looks at anything of them.
  std::vector<QueuedStart> starts;
  std::vector<StackMemory> stacks;  // what keeps those that pass
  std::size_t bytes =
      0;  // of the records, or where nobody looks at them, of the samples; and of passing stacks
  std::uint64_t bytes_read = 0;  // of the capture, when the batch tells it; otherwise 0

  // Sets sample.block.
  void add(QueuedSample sample, const format::BlockRef& block);
  // One whose record nobody looks at.
  void add(const QueuedSample& sample);
  void add(const QueuedSample& sample, const QueuedStart& start) {
    add(sample);
    starts.push_back(start);
    bytes += sizeof start;
  }
  // The memory of a sample's stack.
  void keep(const StackMemory& memory, const Stack& stack) {
    if (std::find(stacks.rbegin(), stacks.rend(), memory) == stacks.rend()) stacks.push_back(memory);
    bytes += stack.frames.size_bytes();
  }
  // One without samples may tell how far the reading is.
  bool is_empty() const { return samples.empty() && bytes_read == 0; }
  bool has_memory() const { return samples.capacity() > 0; }
  void clear();
};

class SampleQueue : public BatchQueue<SampleBatch> {
 public:
  SampleQueue() : BatchQueue(std::size_t{2} << 20) {}
};

}  // namespace tacho::report
