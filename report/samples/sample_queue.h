// Samples on their way from the thread that reads a capture to the one that shows them.
//
// They travel by the thousand, so that neither thread waits for the other at each one. How far the reader
// runs ahead is bounded by the bytes of the records, which is what they hold in memory.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string_view>
#include <vector>

#include "format/time_order.h"
#include "report/samples/resolved_sample.h"

namespace tacho::report {

// A resolved sample, but for the fields of its record: taking those apart again is cheaper than copying them.
// It fills one cache line, as lines are what travels between processors.
struct alignas(64) QueuedSample {
  const std::byte* record = nullptr;  // the whole, header included
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

struct SampleBatch {
  std::vector<QueuedSample> samples;     // at most 65,536, so that a block's number fits
  std::vector<format::BlockRef> blocks;  // what the records lie in
  std::size_t bytes = 0;                 // of the records
  std::uint64_t bytes_read = 0;          // of the capture, when the batch tells it; otherwise 0

  // Sets sample.block.
  void add(QueuedSample sample, const format::BlockRef& block);
  void clear();
};

// Every member may be called by the side that it is listed under, and by no other.
class SampleQueue {
 public:
  // The reader's side. put() waits for room, takes the batch and leaves it empty; false: nobody wants more.
  bool put(SampleBatch& batch);
  void wait_until_shown();  // all that was put
  void end();

  // The other side. take() waits for a batch; false: there will be none.
  bool take(SampleBatch& batch);
  void stop();

 private:
  static constexpr std::size_t kMostBytes = std::size_t{16} << 20;  // that wait
  std::mutex mutex_;
  std::condition_variable has_room_, has_batch_, is_idle_;
  std::deque<SampleBatch> waiting_;
  std::vector<SampleBatch> empty_;  // kept for their memory
  std::size_t bytes_ = 0;
  bool takes_ = false;  // the other side waits for a batch
  bool ended_ = false, stopped_ = false;
};

}  // namespace tacho::report
