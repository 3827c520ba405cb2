// Batches of whole records on their way to the writing thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "record/output/record_counts.h"

namespace tacho::record {

// Actions of the writing thread after a batch: the steps from one file to the next.
enum class FileStep : std::uint8_t { None, PrepareNext, BeginNext };

struct Batch {
  std::vector<std::byte> records = {};  // whole records
  bool ends_round = false;              // all rings were read since the last round
  RecordCounts counts = {};             // of everything up to the batch's end
  // The time of the sample before the first gap that a LOST record of the batch reports; ~0: there is none.
  std::uint64_t gap_begin = ~std::uint64_t{0};
  FileStep step = FileStep::None;
};

// A queue between the thread that drains the rings and the one that writes, with a limit in bytes. If it is
// full, the draining thread waits, the rings fill up, and the kernel counts the samples that it drops.
class RecordQueue {
 public:
  explicit RecordQueue(std::size_t limit) : limit_(limit) {}

  // Waits for space up to `patience`, so that the caller can do other things meanwhile. False: no space, and
  // `batch` is unchanged. A batch above the limit is accepted by an empty queue. After abandon() batches are
  // dropped, and the result is true.
  bool push_batch(Batch& batch, std::chrono::milliseconds patience);
  // Waits for a batch; nullopt: the queue is closed and empty, or abandoned.
  std::optional<Batch> pop_batch();
  // No more batches will come.
  void close_queue();
  // One side failed: no side waits any longer, and unwritten batches are dropped.
  void abandon();
  bool is_abandoned();
  // The size of the batches that wait.
  std::size_t bytes();

  // Buffers of written batches are used again, so that steady recording allocates nothing.
  void give_back(std::vector<std::byte> buffer);
  std::vector<std::byte> spare_buffer();
  // Frees the buffers of written batches when memory is short.
  void free_spares();

 private:
  std::mutex mutex_;
  std::condition_variable has_room_, has_batch_;
  std::deque<Batch> batches_;
  std::vector<std::vector<std::byte>> spare_;
  std::size_t bytes_ = 0;
  std::size_t limit_;
  bool closed_ = false, abandoned_ = false;
};

}  // namespace tacho::record
